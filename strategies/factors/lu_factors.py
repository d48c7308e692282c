"""A square matrix by its LU factorization, solved against."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, full_rank

__all__ = ["LUFactors"]


@dataclass(frozen=True, eq=False)
class LUFactors(Nonsingular):
    """F⁻¹ of a nonsingular F = P L U, by two triangular solves (LAPACK getrs).

    Example:
        >>> F = torch.tensor([[0.0, 2.0], [4.0, 0.0]])
        >>> LUFactors(*torch.linalg.lu_factor(F)).apply(torch.tensor([[4.0], [8.0]])).flatten()
        tensor([2., 2.])
    """

    LU: Tensor
    pivots: Tensor

    @property
    def rank(self) -> Tensor:
        return full_rank(self.LU)

    def solve(self, c: Tensor) -> Tensor:
        return torch.linalg.lu_solve(self.LU, self.pivots, c)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return torch.linalg.lu_solve(self.LU, self.pivots, x, adjoint=True)

    def dense(self) -> Tensor:
        n = self.LU.shape[-1]
        identity = torch.eye(n, dtype=self.LU.dtype, device=self.LU.device)
        return self.solve(identity.expand(self.LU.shape))
