"""A matrix between orthonormal bases: F = U C Vᴴ, the form of a QR, an SVD and a URV alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse


@dataclass(frozen=True, eq=False)
class Orthogonal(PseudoInverse):
    """F⁺ = V C⁻¹ Uᴴ with U (m×k) and V (n×k) orthonormal and C (k×k) nonsingular.

    Where the matrices of a batch differ in rank, k is the largest; the columns of U and V beyond a
    matrix's own rank are zero, so that whatever C holds there has no effect.

    Args:
        left: U.
        core: C⁻¹.
        right: V, or None where V is the identity (full column rank by a QR).
        ranks: of each matrix.
        full_column_rank, full_row_rank: see `PseudoInverse`.

    Example:
        >>> from strategies.factors import Triangular
        >>> from strategies.factors.pseudo_inverse import Structure
        >>> Q, R = torch.linalg.qr(torch.tensor([[3.0], [4.0]]))
        >>> F = Orthogonal(Q, Triangular(R, Structure.UPPER), None, torch.tensor(1), True, False)
        >>> F.apply(torch.tensor([[3.0], [4.0]])).round(decimals=4)
        tensor([[1.]])
    """

    left: Tensor
    core: PseudoInverse
    right: Tensor | None
    ranks: Tensor
    full_column_rank: bool
    full_row_rank: bool

    @property
    def singular_values(self) -> Tensor | None:
        return self.core.singular_values

    @property
    def rank(self) -> Tensor:
        return self.ranks

    def to_range(self, b: Tensor) -> Tensor:
        return self.left.mH @ b

    def from_range(self, c: Tensor) -> Tensor:
        return self.left @ c

    def add_from_range(self, c: Tensor, target: Tensor) -> None:
        if target.ndim == 2:
            target.addmm_(self.left, c)
        else:
            super().add_from_range(c, target)

    def solve(self, c: Tensor) -> Tensor:
        x = self.core.apply(c)
        return x if self.right is None else self.right @ x

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.core.apply_adjoint(x if self.right is None else self.right.mH @ x)

    def null_complement(self, x: Tensor) -> Tensor:
        if self.full_column_rank or self.right is None:
            return torch.zeros_like(x)
        return self._of_deficient(x - self.right @ (self.right.mH @ x))

    def range_complement(self, b: Tensor) -> Tensor:
        found = super().range_complement(b)
        return found if self.full_row_rank else self._of_deficient(found)

    def _of_deficient(self, complement: Tensor) -> Tensor:
        """Zero, and not roundoff, for those matrices of a batch that leave nothing out."""
        if not self.ranks.ndim:
            return complement
        is_full = self.ranks == complement.shape[-2]
        return complement.masked_fill(is_full[..., None, None], 0)

    def dense(self) -> Tensor:
        return self.solve(self.left.mH)


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
    """F⁺ of F = U diag(s) Vᴴ, U (..., m, k) and V (..., n, k), with those values s, descending, that count.

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
