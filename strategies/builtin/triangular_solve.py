"""Keep triangular factors and solve against them."""

from torch import Tensor

from strategies.errors import raise_if_singular
from strategies.factors import LUFactors, Orthogonal, Reflected, Triangular
from strategies.factors.condition import smallest_of_LU, smallest_of_R
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.householder import qr
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.factors.rank_guards import refuse_growth, refuse_near_deficiency
from strategies.formulas.accuracy_classes import SOLVES_WITH_LU
from strategies.strategy import Strategy, Tolerance


class TriangularSolve(Strategy):
    """LU of a square matrix, R of a QR of any other, and substitution against them.

    Full rank only. Refused are also matrices that are nearly deficient, and square ones whose elements
    grow in the elimination.

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
            LU, pivots, _ = lu_factor_ex(matrix)
            refuse_near_deficiency(smallest_of_LU(LU, pivots), matrix, rtol, atol, self.name)
            refuse_growth(matrix, LU, self.name)
            return LUFactors(LU, pivots)
        Q, R = qr(matrix)
        refuse_near_deficiency(smallest_of_R(R), matrix, rtol, atol, self.name)
        return by_qr(Q, R)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        if not Reflected.pays(matrix, rhs):
            return NotImplemented
        inverse = Reflected.of(matrix)
        refuse_near_deficiency(smallest_of_R(inverse.packed_R), matrix, rtol, None, self.name)
        return inverse.apply(rhs), inverse

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        LU, pivots, info = lu_factor_ex(matrix)
        raise_if_singular(info != 0, self.name, "it has no inverse")
        refuse_growth(matrix, LU, self.name)
        return LUFactors(LU, pivots)


def by_qr(Q: Tensor, R: Tensor) -> Orthogonal:
    """The pseudo-inverse of A = Q R of full column rank, with as many rows as columns or more."""
    core, is_square = Triangular(R, Structure.UPPER), Q.shape[-2] == Q.shape[-1]
    return Orthogonal(Q, core, None, core.rank, full_column_rank=True, full_row_rank=is_square)
