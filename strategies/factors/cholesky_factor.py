"""A Hermitian positive definite matrix by its Cholesky factor, solved against."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, Structure, full_rank
from strategies.factors.triangular import Triangular

__all__ = ["CholeskyFactor"]

_BLOCK = 128
"""Rows up to which two solves for the identity take less time than blocks, as measured."""


@dataclass(frozen=True, eq=False)
class CholeskyFactor(Nonsingular):
    """F⁻¹ of F = L Lᴴ, by two triangular solves.

    Example:
        >>> F = torch.tensor([[4.0, 2.0], [2.0, 5.0]])
        >>> CholeskyFactor(torch.linalg.cholesky(F)).apply(torch.tensor([[6.0], [7.0]])).flatten()
        tensor([1., 1.])
    """

    factor: Tensor

    @property
    def rank(self) -> Tensor:
        return full_rank(self.factor)

    def solve(self, c: Tensor) -> Tensor:
        # torch.cholesky_solve copies the factor at every call.
        triangle = Triangular(self.factor, Structure.LOWER)
        return triangle.solve_adjoint(triangle.solve(c))

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.solve(x)

    def dense(self) -> Tensor:
        """F⁻¹, Hermitian, (..., n, n), in 5n³/6 operations for the 2n³ of two solves.

        With S the inverse for the trailing block, L₂₂, and Y = L₂₁ L₁₁⁻¹

            F⁻¹ = [ (L₁₁L₁₁ᴴ)⁻¹ + Yᴴ S Y   −Yᴴ S ]
                  [ −S Y                    S    ],

        which is the inverse of a product of two block triangles, and halves the size.
        """
        return _inverse(self.factor)


def _inverse(L: Tensor) -> Tensor:
    n = L.shape[-1]
    if n <= _BLOCK:
        triangle = Triangular(L, Structure.LOWER).dense()
        return triangle.mH @ triangle
    half = n // 2
    L11, L21, L22 = L[..., :half, :half], L[..., half:, :half], L[..., half:, half:]
    S, first = _inverse(L22), _inverse(L11)
    Y = torch.linalg.solve_triangular(L11, L21, upper=False, left=False)
    below = S @ Y
    first += Y.mH @ below
    below.neg_()
    rows = torch.cat((first, below.mH), -1), torch.cat((below, S), -1)
    return torch.cat(rows, -2)
