"""A matrix by its singular value decomposition, of which some singular values count."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.orthogonal import Orthogonal
from strategies.factors.pseudo_inverse import Nonsingular

__all__ = ["SingularValues", "truncated"]


@dataclass(frozen=True, eq=False)
class SingularValues(Nonsingular):
    """The inverse of a diagonal of singular values, zero where they were cut off."""

    reciprocals: Tensor
    all_singular_values: Tensor

    @property
    def rank(self) -> Tensor:
        return (self.reciprocals != 0).sum(-1)

    @property
    def singular_values(self) -> Tensor | None:
        return self.all_singular_values

    def solve(self, c: Tensor) -> Tensor:
        return self.reciprocals.unsqueeze(-1) * c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.reciprocals.unsqueeze(-1) * x

    def dense(self) -> Tensor:
        return torch.diag_embed(self.reciprocals)


def truncated(U: Tensor, values: Tensor, V: Tensor, counts: Tensor) -> Orthogonal:
    """F⁺ of F = U diag(s) Vᴴ with the singular values that count.

    Args:
        U: (..., m, k).
        values: s, (..., k), the largest first.
        V: (..., n, k).
        counts: which of them do, bool (..., k).

    Example:
        >>> s = torch.tensor([2.0, 0.0])
        >>> truncated(torch.eye(2), s, torch.eye(2), s > 0).dense().tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    rank, k = counts.sum(-1), values.shape[-1]
    largest, complete = (int(rank.max()), int(rank.min())) if rank.numel() else (0, k)
    if complete < k:
        of_some = counts[..., :largest].unsqueeze(-2)
        U, V = U[..., :largest] * of_some, V[..., :largest] * of_some
        k = largest
    return Orthogonal(
        U,
        SingularValues(torch.where(counts, values.reciprocal(), 0)[..., :k], values),
        V,
        rank,
        full_column_rank=complete == V.shape[-2],
        full_row_rank=complete == U.shape[-2],
    )
