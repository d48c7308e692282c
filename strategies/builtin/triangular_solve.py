"""Keep triangular factors and solve against them."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.accuracy_classes import SOLVES_WITH_LU
from strategies.errors import raise_if_deficient, raise_if_singular
from strategies.factors import LUFactors, Orthogonal, Reflected, Triangular
from strategies.interface import Strategy, Tolerance, rank_threshold
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["TriangularSolve"]


class TriangularSolve(Strategy):
    """LU of a square matrix, R of a QR of any other, and substitution against them.

    Full rank only: a diagonal entry of the triangular factor that is negligible beside the largest
    is refused.

    Example:
        >>> import torch, strategies
        >>> F = strategies.get("triangular_solve").factor(torch.tensor([[3.0], [4.0]]))
        >>> F.apply(torch.tensor([[6.0], [8.0]])).round(decimals=4)
        tensor([[2.]])
    """

    name = "triangular_solve"
    summary = "LU of a square matrix, QR of any other; triangular solves against the factor"
    requires_full_rank = True
    accuracy = SOLVES_WITH_LU

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        if m == n:
            LU, pivots, _ = torch.linalg.lu_factor_ex(matrix)
            return self._by_lu(LU, pivots, rtol, atol)
        Q, R = torch.linalg.qr(matrix)
        return self._by_qr(Q, R, rtol, atol)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        if not Reflected.pays(matrix, rhs):
            return NotImplemented
        inverse = Reflected.of(matrix)
        self._refuse_singular(inverse.packed_R, matrix.shape, rtol, None)
        return inverse.apply(rhs), inverse

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        return self._nonsingular(*torch.linalg.lu_factor_ex(matrix))

    def _nonsingular(self, LU: Tensor, pivots: Tensor, info: Tensor) -> LUFactors:
        raise_if_singular(info != 0, self.name, "it has no inverse")
        return LUFactors(LU, pivots)

    def _by_lu(self, LU: Tensor, pivots: Tensor, rtol: Tolerance, atol: Tolerance) -> LUFactors:
        self._refuse_singular(LU, LU.shape, rtol, atol)
        return LUFactors(LU, pivots)

    def _by_qr(self, Q: Tensor, R: Tensor, rtol: Tolerance, atol: Tolerance) -> Orthogonal:
        self._refuse_singular(R, Q.shape, rtol, atol)
        core = Triangular(R, Structure.UPPER)
        return Orthogonal(Q, core, None, core.rank, full_column_rank=True, full_row_rank=False)

    def _refuse_singular(
        self, factor: Tensor, shape: torch.Size, rtol: Tolerance, atol: Tolerance
    ) -> None:
        diagonal = factor.diagonal(dim1=-2, dim2=-1).abs()
        if diagonal.numel() == 0:
            return
        threshold = rank_threshold(diagonal.amax(-1), shape, rtol, atol)
        raise_if_deficient(diagonal.amin(-1) <= threshold, self.name)
