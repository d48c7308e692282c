"""Form the inverse as a matrix and multiply by it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.errors import raise_if_singular
from strategies.factors import Dense, Triangular
from strategies.interface import Strategy, Tolerance, rank_threshold
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["ExplicitInverse"]


class ExplicitInverse(Strategy):
    """A⁻¹, L⁻¹, U⁻¹, or (AᴴA)⁻¹Aᴴ of a tall matrix, formed and applied by products.

    Full rank only. A tall matrix is handled through AᴴA, whose condition number is the square:
    beyond κ = u^(−1/2) its rank cannot be seen any more, and the matrix is refused.

    Example:
        >>> import torch, strategies
        >>> strategies.get("explicit_inverse").factor(torch.tensor([[2.0]])).dense()
        tensor([[0.5000]])
    """

    name = "explicit_inverse"
    summary = "the inverse, or (AᴴA)⁻¹Aᴴ, formed as a matrix; products"
    requires_full_rank = True

    def factor(
        self,
        matrix: Tensor,
        structure: Structure = Structure.GENERAL,
        *,
        rtol: Tolerance = None,
        atol: Tolerance = None,
    ) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        if structure.is_triangular:
            triangle = Triangular(matrix, structure)
            return Dense(matrix, triangle.dense(), triangle.rank, True, True)
        if m < n:
            return self.factor(matrix.mH, rtol=rtol, atol=atol).adjoint
        rank = torch.full(matrix.shape[:-2], n, dtype=torch.int64, device=matrix.device)
        if m == n:
            inverse, info = torch.linalg.inv_ex(matrix)
            self._refuse(info != 0)
            self._refuse_ill_conditioned(matrix, inverse, rtol, atol)
            return Dense(matrix, inverse, rank, True, True)
        gram_factor, info = torch.linalg.cholesky_ex(matrix.mH @ matrix)
        self._refuse_deficient_gram(gram_factor, info, matrix.shape, rtol, atol)
        gram_inverse = torch.cholesky_inverse(gram_factor)
        return _NormalEquations(matrix, gram_inverse @ matrix.mH, gram_inverse, rank)

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        *batch, n, _ = matrix.shape
        inverse, info = torch.linalg.inv_ex(matrix)
        raise_if_singular(info != 0, self.name, "it has no inverse")
        rank = torch.full(batch, n, dtype=torch.int64, device=matrix.device)
        return Dense(matrix, inverse, rank, True, True)

    def inv_backward(self, inverse: PseudoInverse, cotangent: Tensor) -> Tensor:
        adjoint = inverse.dense().mH
        product, unused = cotangent @ adjoint, cotangent.new_empty(())
        # The sign as a factor of the product costs nothing, and as a pass over its result a tenth.
        if cotangent.ndim == 2:
            return torch.addmm(unused, adjoint, product, beta=0, alpha=-1)
        *batch, n, _ = cotangent.shape
        left, right = (m.reshape(math.prod(batch), n, n) for m in (adjoint, product))
        return torch.baddbmm(unused, left, right, beta=0, alpha=-1).reshape(cotangent.shape)

    def _refuse_ill_conditioned(
        self, matrix: Tensor, inverse: Tensor, rtol: Tolerance, atol: Tolerance
    ) -> None:
        """σ₁ σ_n⁻¹ is within a factor n of the product of the 1-norms."""
        if matrix.numel() == 0:
            return
        norm = torch.linalg.matrix_norm(matrix, ord=1)
        smallest = torch.linalg.matrix_norm(inverse, ord=1).reciprocal()
        self._refuse(smallest <= rank_threshold(norm, matrix.shape, rtol, atol))

    def _refuse_deficient_gram(
        self, factor: Tensor, info: Tensor, shape: torch.Size, rtol: Tolerance, atol: Tolerance
    ) -> None:
        self._refuse(info != 0)
        diagonal = factor.diagonal(dim1=-2, dim2=-1).real
        if diagonal.numel() == 0:
            return
        largest = diagonal.amax(-1)
        visible = (shape[-1] * torch.finfo(diagonal.dtype).eps) ** 0.5 * largest
        threshold = torch.maximum(rank_threshold(largest, shape, rtol, atol), visible)
        self._refuse(diagonal.amin(-1) <= threshold)

    def _refuse(self, singular: Tensor) -> None:
        raise_if_singular(
            singular,
            self.name,
            "'qr_pinv' and 'svd_truncated_pinv' take any rank in pinv and lstsq",
        )


@dataclass(frozen=True, eq=False)
class _NormalEquations(PseudoInverse):
    """A⁺ = (AᴴA)⁻¹Aᴴ of a tall A of full column rank, both matrices formed."""

    matrix: Tensor
    inverse: Tensor
    gram_inverse: Tensor
    ranks: Tensor

    full_column_rank = True
    full_row_rank = False
    has_stable_gram = True  # Beside A⁺, which has the same error.

    @property
    def rank(self) -> Tensor:
        return self.ranks

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

    def null_complement(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def dense(self) -> Tensor:
        return self.inverse
