"""F⁺ as a matrix, applied by products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse, full_rank

__all__ = ["Dense", "DenseInverse"]


@dataclass(frozen=True, eq=False)
class Dense(PseudoInverse):
    """F⁺ formed as an n×m matrix, and F.

    Made of differentiable products only, so that derivatives of derivatives can be taken through it.

    Example:
        >>> F = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> Dense(F, F.inverse(), torch.tensor(2), True, True).apply(torch.ones(2, 1)).flatten()
        tensor([0.5000, 0.2500])
    """

    matrix: Tensor
    inverse: Tensor
    ranks: Tensor
    full_column_rank: bool
    full_row_rank: bool

    @classmethod
    def of_any_rank(cls, matrix: Tensor, inverse: Tensor) -> Self:
        """F⁺ as differentiable in F and F⁺ as if nothing were known of the rank."""
        rank = torch.zeros(matrix.shape[:-2], dtype=torch.int64, device=matrix.device)
        return cls(matrix, inverse, rank, full_column_rank=False, full_row_rank=False)

    @property
    def rank(self) -> Tensor:
        return self.ranks

    def to_range(self, b: Tensor) -> Tensor:
        return b if self.full_row_rank else self.matrix @ (self.inverse @ b)

    def from_range(self, c: Tensor) -> Tensor:
        return c

    def solve(self, c: Tensor) -> Tensor:
        return self.inverse @ c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.inverse.mH @ x

    def apply(self, b: Tensor) -> Tensor:
        return self.inverse @ b

    def null_complement(self, x: Tensor) -> Tensor:
        if self.full_column_rank:
            return torch.zeros_like(x)
        return x - self.inverse @ (self.matrix @ x)

    def dense(self) -> Tensor:
        return self.inverse


@dataclass(frozen=True, eq=False)
class DenseInverse(Nonsingular):
    """F⁻¹ of square matrices formed as a matrix, without F.

    Example:
        >>> DenseInverse(torch.tensor([[0.5]])).apply(torch.tensor([[4.0]]))
        tensor([[2.]])
    """

    inverse: Tensor

    @property
    def rank(self) -> Tensor:
        return full_rank(self.inverse)

    def solve(self, c: Tensor) -> Tensor:
        return self.inverse @ c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.inverse.mH @ x

    def dense(self) -> Tensor:
        return self.inverse
