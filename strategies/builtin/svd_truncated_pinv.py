"""Truncate an SVD and keep its factors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.errors import raise_if_not_finite
from strategies.factors import Orthogonal
from strategies.factors.condition import frobenius_norms
from strategies.factors.pseudo_inverse import Nonsingular, PseudoInverse, Structure
from strategies.factors.rank_guards import refuse_singular
from strategies.formulas.accuracy_classes import FACTORS_U_ORTHOGONALLY
from strategies.strategy import Strategy, Tolerance, rank_threshold

__all__ = ["SVDTruncatedPinv"]


class SVDTruncatedPinv(Strategy):
    """U_r, σ_r, V_r of an SVD cut at the tolerance, applied as products and divisions.

    Any rank. The only strategy whose cut is the nearest matrix of that rank, and whose factors show
    the singular values. A square matrix that is to be inverted is refused as by `qr_pinv`.

    Example:
        >>> import torch, strategies
        >>> F = strategies.get("svd_truncated_pinv").factor(torch.ones(3, 2))
        >>> F.rank, F.dense()[0, 0].round(decimals=4)
        (tensor(1), tensor(0.1667))
    """

    name = "svd_truncated_pinv"
    summary = "U_r, σ_r, V_r of a truncated SVD; products"
    requires_full_rank = False
    fused = ("svd",)
    accuracy = FACTORS_U_ORTHOGONALLY

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> Orthogonal:
        m, n = matrix.shape[-2:]
        U, singular_values, Vh = torch.linalg.svd(matrix, full_matrices=False)
        V = Vh.mH
        if matrix.is_cuda:  # where an SVD may make numbers of NaN
            singular_values = singular_values + (frobenius_norms(matrix) * 0).unsqueeze(-1)
        raise_if_not_finite(singular_values, matrix)
        if singular_values.numel() == 0:
            kept = torch.zeros_like(singular_values, dtype=torch.bool)
        else:
            threshold = rank_threshold(singular_values[..., 0], matrix.shape, rtol, atol)
            kept = singular_values > threshold.unsqueeze(-1)
        rank = kept.sum(-1)
        largest, complete = (int(rank.max()), int(rank.min())) if rank.numel() else (0, min(m, n))
        if complete < min(m, n):
            k = largest
            keep = kept[..., :k].unsqueeze(-2)
            U, V = U[..., :k] * keep, V[..., :k] * keep
        else:
            k = min(m, n)
        reciprocals = torch.where(kept, singular_values.reciprocal(), 0)[..., :k]
        return Orthogonal(
            U,
            SingularValues(reciprocals, singular_values),
            V,
            rank,
            full_column_rank=complete == n,
            full_row_rank=complete == m,
        )

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        inverse = self.factor_tall(matrix, rtol=0.0, atol=0.0)
        if matrix.numel() and inverse.singular_values is not None:
            refuse_singular(inverse.singular_values[..., -1], matrix, self.name)
        return inverse

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        if matrix.is_cuda:  # whose SVD leaves the range where LAPACK scales
            return super().factor_triangular(matrix, structure)
        return self.factor_tall(structure.dense(matrix), rtol=0.0, atol=0.0)


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
