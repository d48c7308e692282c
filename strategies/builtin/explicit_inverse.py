"""Form the inverse as a matrix and multiply by it."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.errors import raise_if_deficient, raise_if_singular
from strategies.factors import DenseInverse, LUFactors, Triangular
from strategies.factors.condition import frobenius_norms
from strategies.factors.elimination import lu_factor_ex
from strategies.factors.pseudo_inverse import PseudoInverse, Structure, full_rank
from strategies.factors.rank_guards import NOISE, refuse_growth, refuse_near_deficiency
from strategies.formulas.accuracy_classes import SOLVES_NORMAL_EQUATIONS
from strategies.strategy import Saved, Strategy, Tolerance


class ExplicitInverse(Strategy):
    """A⁻¹, L⁻¹, U⁻¹, or (AᴴA)⁻¹Aᴴ of a tall matrix, formed and applied by products.

    Full rank only. A tall matrix is handled through AᴴA, whose condition number is the square:
    beyond κ = u^(−1/2) its rank cannot be seen any more, and the matrix is refused. So are square ones
    that are nearly deficient, or whose elements grow in the elimination.

    Example:
        >>> import torch, strategies
        >>> strategies.get("explicit_inverse").factor(torch.tensor([[2.0]])).dense()
        tensor([[0.5000]])
    """

    name = "explicit_inverse"
    summary = "the inverse, or (AᴴA)⁻¹Aᴴ, formed as a matrix; products"
    requires_full_rank = True
    accuracy = SOLVES_NORMAL_EQUATIONS

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        if m == n:
            inverse, info = self._eliminated(matrix)
            raise_if_deficient(info != 0, self.name)
            smallest = frobenius_norms(inverse).reciprocal()
            refuse_near_deficiency(smallest, matrix, rtol, atol, self.name)
            return DenseInverse(inverse)
        gram = matrix.mH @ matrix
        gram_factor, info = torch.linalg.cholesky_ex(gram)
        raise_if_deficient(info != 0, self.name)
        gram_inverse = torch.cholesky_inverse(gram_factor)
        # The trace of (AᴴA)⁻¹ is the sum of all 1/σ².
        smallest = gram_inverse.diagonal(dim1=-2, dim2=-1).real.sum(-1).rsqrt()
        # Roundoff of AᴴA may have made its rank full: it leaves up to 2.4 ε of zero.
        least = frobenius_norms(gram_inverse).reciprocal()
        visible = NOISE / 2 * torch.finfo(gram.dtype).eps * frobenius_norms(gram)
        raise_if_deficient(~(least > visible), self.name)
        refuse_near_deficiency(smallest, matrix, rtol, atol, self.name)
        return _NormalEquations(matrix, gram_inverse @ matrix.mH, gram_inverse)

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        return DenseInverse(Triangular(matrix, structure).dense())

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        inverse, info = self._eliminated(matrix)
        raise_if_singular(info != 0, self.name, "it has no inverse")
        return DenseInverse(inverse)

    def _eliminated(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        """A⁻¹, and not zero where there is none, (...)."""
        LU, pivots, info = lu_factor_ex(matrix)
        refuse_growth(matrix, LU, self.name)
        return LUFactors(LU, pivots).dense(), info

    def inv_backward(self, saved: Saved, cotangent: Tensor) -> Tensor:
        adjoint = saved.result.mH
        product, unused = cotangent @ adjoint, cotangent.new_empty(())
        # The sign as a factor of the product costs nothing, and as a pass over its result a tenth.
        if cotangent.ndim == 2:
            return torch.addmm(unused, adjoint, product, beta=0, alpha=-1)
        *batch, n, _ = cotangent.shape
        left, right = (m.reshape(math.prod(batch), n, n) for m in (adjoint, product))
        return torch.baddbmm(unused, left, right, beta=0, alpha=-1).reshape(cotangent.shape)


@dataclass(frozen=True, eq=False)
class _NormalEquations(PseudoInverse):
    """A⁺ = (AᴴA)⁻¹Aᴴ of a tall A of full column rank, both matrices formed."""

    matrix: Tensor
    inverse: Tensor
    gram_inverse: Tensor

    full_column_rank = True
    full_row_rank = False
    has_stable_gram = True  # Beside A⁺, which has the same error.

    @property
    def rank(self) -> Tensor:
        return full_rank(self.matrix)

    def to_range(self, b: Tensor) -> Tensor:
        return self.inverse @ b

    def from_range(self, c: Tensor) -> Tensor:
        return self.matrix @ c

    def solve(self, c: Tensor) -> Tensor:
        return c

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.gram_inverse @ x

    def apply_adjoint(self, x: Tensor) -> Tensor:
        return self.inverse.mH @ x

    def dense(self) -> Tensor:
        return self.inverse
