"""Factors Y that a quadratic equation F(Y) = A determines, and their derivatives to all orders.

Two linear maps at Y are all that is inverted, and each is made of the other when it is differentiated:

    push:  dA ↦ dY with F'(Y) dY = dA            pull:  Ȳ ↦ Ā, its adjoint.

Along dY' the equation changes by F''(dY, dY') beside F'(Y), which dY and Ā have to make up for:

    d push = push(−F''(dY, dY'))                 d pull = pull(−F''(dY', ·)ᴴ Ā).

So nothing that has been rounded meets an inverse but by `push` and `pull`, at any order. Written over the
factors and their inverses instead, second derivatives have products as U⁻¹ dU, where the condition of A
meets itself. `strategies.autograd.quadratic` differentiates so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

__all__ = ["QuadraticEquation"]


class QuadraticEquation(ABC):
    """F(Y) = A of matrices, (..., m, n) both."""

    @abstractmethod
    def push(self, Y: Tensor, tangent: Tensor) -> Tensor:
        """The tangent dY from dA."""

    @abstractmethod
    def pull(self, Y: Tensor, cotangent: Tensor) -> Tensor:
        """The gradient Ā from Ȳ."""

    @abstractmethod
    def second(self, tangent: Tensor, other: Tensor) -> Tensor:
        """F''(dY, dY'), in differentiable calls."""

    @abstractmethod
    def second_adjoint(self, tangent: Tensor, gradient: Tensor) -> Tensor:
        """F''(dY, ·)ᴴ Ā, likewise."""
