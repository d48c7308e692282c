"""Truncate an SVD and keep its factors."""

import torch
from torch import Tensor

from strategies.errors import raise_if_not_finite
from strategies.factors import Orthogonal
from strategies.factors.condition import frobenius_norms
from strategies.factors.orthogonal import truncated
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.factors.rank_guards import refuse_singular
from strategies.formulas.accuracy_classes import FACTORS_U_ORTHOGONALLY
from strategies.strategy import Strategy, Tolerance, rank_threshold


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
        return truncated(U, singular_values, V, kept)

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        inverse = self.factor_tall(matrix, rtol=0.0, atol=0.0)
        if matrix.numel() and inverse.singular_values is not None:
            refuse_singular(inverse.singular_values[..., -1], matrix, self.name)
        return inverse

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        if matrix.is_cuda:  # whose SVD leaves the range where LAPACK scales
            return super().factor_triangular(matrix, structure)
        return self.factor_tall(structure.dense(matrix), rtol=0.0, atol=0.0)
