"""Substitution with one triangle of a matrix, differentiated as a solve with all of it."""

from dataclasses import dataclass

from torch import Tensor

from strategies.autograd.nodes import is_opaque
from strategies.autograd.quadratic import pull, push
from strategies.factors import Triangular, elimination
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas.quadratic import BilinearEquation
from strategies.formulas.values import with_values


class FullTriangular(Triangular):
    """F⁻¹ of a triangular F as a function of a full matrix, at one whose other triangle is zero.

    That is not read, and has a gradient.

    Example:
        >>> import torch
        >>> L = torch.eye(2).requires_grad_()
        >>> FullTriangular(L, Structure.LOWER).apply(torch.ones(2, 1)).sum().backward()
        >>> L.grad
        tensor([[-1., -1.],
                [-1., -1.]])
    """

    def solve(self, c: Tensor) -> Tensor:
        return push(_System(self.structure), self.factor, c)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return pull(_System(self.structure), self.factor, x)


@dataclass(frozen=True)
class _System(BilinearEquation):
    """F X = B, with such an F."""

    structure: Structure

    def push(self, Y: Tensor, tangent: Tensor) -> Tensor:
        if any(map(is_opaque, (Y, tangent))):
            return elimination.solve(self._full(Y), tangent)
        return Triangular(Y, self.structure).solve(tangent)

    def pull(self, Y: Tensor, cotangent: Tensor) -> Tensor:
        if any(map(is_opaque, (Y, cotangent))):
            return elimination.solve(self._full(Y).mH, cotangent)
        return Triangular(Y, self.structure).solve_adjoint(cotangent)

    def second(self, tangent: Tensor, other: Tensor) -> Tensor:
        return tangent @ other

    def second_adjoint(self, tangent: Tensor, gradient: Tensor) -> Tensor:
        return tangent.mH @ gradient

    def first_adjoint(self, other: Tensor, gradient: Tensor) -> Tensor:
        return gradient @ other.mH

    def _full(self, F: Tensor) -> Tensor:
        return with_values(F, F.triu() if self.structure.is_upper else F.tril())
