"""Factors Y that a quadratic equation F(Y) = A determines, and their derivatives to all orders.

Two linear maps at Y are all that is inverted, and each is made of the other when it is differentiated:

    push:  dA ↦ dY with F'(Y) dY = dA            pull:  Ȳ ↦ Ā, its adjoint.

Along dY' the equation changes by F''(dY, dY') beside F'(Y), which dY and Ā have to make up for:

    d push = push(−F''(dY, dY'))                 d pull = pull(−F''(dY', ·)ᴴ Ā).

So nothing that has been rounded meets an inverse but by `push` and `pull`, at any order. Written over the
factors and their inverses instead, second derivatives have products as U⁻¹ dU, where the condition of A
meets itself. `strategies.autograd.quadratic` differentiates so.

F'' is symmetric. What is needed is less: push and pull that invert X ↦ B(Y, X), which is linear in Y, too.
"""

from abc import ABC, abstractmethod

from torch import Tensor


class BilinearEquation(ABC):
    """B(Y, X) = T, to be solved for X."""

    @abstractmethod
    def push(self, Y: Tensor, tangent: Tensor) -> Tensor:
        """X from T: of a quadratic equation dY from dA, B being F''."""

    @abstractmethod
    def pull(self, Y: Tensor, cotangent: Tensor) -> Tensor:
        """The gradient of T from that of X: Ā from Ȳ."""

    @abstractmethod
    def second(self, tangent: Tensor, other: Tensor) -> Tensor:
        """B(dY, X), in differentiable calls."""

    @abstractmethod
    def second_adjoint(self, tangent: Tensor, gradient: Tensor) -> Tensor:
        """B(dY, ·)ᴴ Ā, likewise."""

    @abstractmethod
    def first_adjoint(self, other: Tensor, gradient: Tensor) -> Tensor:
        """B(·, X)ᴴ Ā, likewise."""


class QuadraticEquation(BilinearEquation):
    """F(Y) = A of matrices, (..., m, n) both."""

    def first_adjoint(self, other: Tensor, gradient: Tensor) -> Tensor:
        return self.second_adjoint(other, gradient)
