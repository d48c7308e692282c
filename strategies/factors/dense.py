"""F⁺ as a matrix, applied by products."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import PseudoInverse


class WithMatrix(PseudoInverse):
    """F⁺ beside F itself, with which it projects: vectors are their own range coordinates."""

    matrix: Tensor

    def to_range(self, b: Tensor) -> Tensor:
        return b if self.full_row_rank else self.matrix @ self.solve(b)

    def from_range(self, c: Tensor) -> Tensor:
        return c

    def apply(self, b: Tensor) -> Tensor:
        return self.solve(b)

    def null_complement(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x) if self.full_column_rank else x - self.solve(self.matrix @ x)


class InverseMatrix(PseudoInverse):
    """F⁺ formed as a matrix."""

    inverse: Tensor

    def solve(self, c: Tensor) -> Tensor:
        return self.inverse @ c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.inverse.mH @ x

    def dense(self) -> Tensor:
        return self.inverse


@dataclass(frozen=True, eq=False)
class Dense(InverseMatrix, WithMatrix):
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
