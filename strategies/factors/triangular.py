"""A triangular matrix, solved against."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, Structure, full_rank

__all__ = ["Triangular"]


@dataclass(frozen=True, eq=False)
class Triangular(Nonsingular):
    """F⁻¹ of a nonsingular triangular F, by substitution.

    Only the triangle that `structure` names is read. Made of differentiable solves only.

    Example:
        >>> U = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
        >>> Triangular(U, Structure.UPPER).apply(torch.tensor([[4.0], [8.0]])).flatten()
        tensor([1., 2.])
    """

    factor: Tensor
    structure: Structure

    @property
    def rank(self) -> Tensor:
        return full_rank(self.factor)

    def solve(self, c: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(
            self.factor,
            c,
            upper=self.structure.is_upper,
            unitriangular=self.structure.is_unit,
        )

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(
            self.factor.mH,
            x,
            upper=not self.structure.is_upper,
            unitriangular=self.structure.is_unit,
        )

    def dense(self) -> Tensor:
        n = self.factor.shape[-1]
        identity = torch.eye(n, dtype=self.factor.dtype, device=self.factor.device)
        return self.solve(identity.expand(self.factor.shape))
