"""The shared backward interface: what a strategy is.

A strategy says how an inverse is held and applied, by `factor`. Every operation's backward then
follows from its formula, and a strategy that knows a faster way overrides that one method. A
strategy knows neither autograd nor the public operations; it computes on plain tensors, holds no
state and gives the same bits for the same input every time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from strategies.errors import raise_if_singular
from strategies.formulas import det, lstsq, lu, pinv, solve
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["Strategy", "rank_threshold"]

Tolerance = float | Tensor | None


class Strategy(ABC):
    """One way to apply an inverse, usable in the backward of every operation.

    Attributes:
        name: what users write in `strategy=`.
        summary: one line for tables: what it forms and how it is applied.
        requires_full_rank: True where rank-deficient input to pinv and lstsq is refused.
        forward_is_differentiable: True where the operation should be PyTorch's own, differentiated
            by PyTorch; `factor` and the methods below are then not used by `strategies.linalg`.

    Example:
        >>> import strategies
        >>> strategies.get("triangular_solve").requires_full_rank
        True
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    requires_full_rank: ClassVar[bool]
    forward_is_differentiable: ClassVar[bool] = False

    @abstractmethod
    def factor(
        self,
        matrix: Tensor,
        structure: Structure = Structure.GENERAL,
        *,
        rtol: Tolerance = None,
        atol: Tolerance = None,
    ) -> PseudoInverse:
        """Factor a batch of matrices so that F⁺ can be applied.

        Args:
            matrix: F, (..., m, n); square and nonsingular where `structure` is triangular.
            structure: which entries to read.
            rtol: singular values up to rtol·σ₁ count as zero; None as in `torch.linalg.pinv`:
                max(m, n)·ε where atol is None too, else 0. A tensor has the batch shape.
            atol: singular values up to atol count as zero.

        Raises:
            torch.linalg.LinAlgError: a matrix is rank-deficient and the strategy needs full rank.
        """

    def lu_backward(self, LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
        """The gradient of A from that of its packed LU factors.

        Args:
            LU: packed factors of full rank, (..., m, n), of which only this is known: no pivot is 0.
            inverse_order: row i of A is row `inverse_order[i]` of L U, int64 (..., m).
            cotangent: of the packed factors, (..., m, n).
        """
        return lu.permute_rows(lu.backward(self.factor_triangle, LU, cotangent), inverse_order)

    def pinv_backward(self, inverse: PseudoInverse, matrix: Tensor, cotangent: Tensor) -> Tensor:
        """The gradient of A from that of A⁺: see `formulas.pinv`."""
        return pinv.backward(inverse, matrix, cotangent)

    def lstsq_backward(
        self,
        inverse: PseudoInverse,
        matrix: Tensor,
        rhs: Tensor,
        solution: Tensor,
        cotangent: Tensor,
        *,
        need_matrix: bool = True,
    ) -> tuple[Tensor | None, Tensor]:
        """The gradients of A and B from that of X = A⁺B: see `formulas.lstsq`."""
        return lstsq.backward(inverse, matrix, rhs, solution, cotangent, need_matrix=need_matrix)

    def solve_backward(
        self,
        inverse: PseudoInverse,
        solution: Tensor,
        cotangent: Tensor,
        *,
        need_matrix: bool = True,
    ) -> tuple[Tensor | None, Tensor]:
        """The gradients of A and B from that of X = A⁻¹B: see `formulas.solve`."""
        return solve.backward(inverse, solution, cotangent, need_matrix=need_matrix)

    def inv_backward(self, inverse: PseudoInverse, cotangent: Tensor) -> Tensor:
        """The gradient of A from that of A⁻¹: see `formulas.solve`."""
        return solve.inv_backward(inverse, cotangent)

    def det_backward(self, LU: Tensor, inverse_order: Tensor, scale: Tensor) -> Tensor:
        """The gradient `scale` · A⁻ᴴ of det and slogdet, from packed factors: see `formulas.det`."""
        inverse_adjoint = det.inverse_adjoint(self.factor_triangle, LU, inverse_order)
        return scale[..., None, None] * inverse_adjoint

    def solve(self, matrix: Tensor, rhs: Tensor) -> tuple[Tensor, PseudoInverse]:
        """X = A⁻¹B, and the factors with which `solve_backward` will be called.

        Args:
            matrix: A, (..., n, n).
            rhs: B, (..., n, k).

        Raises:
            torch.linalg.LinAlgError: a matrix is singular.
        """
        inverse = self.factor_square(matrix)
        return inverse.apply(rhs), inverse

    def inverse(self, matrix: Tensor) -> tuple[Tensor, PseudoInverse]:
        """A⁻¹, and the factors with which `inv_backward` will be called; as `solve`."""
        inverse = self.factor_square(matrix)
        return inverse.dense(), inverse

    def pseudo_inverse(
        self, matrix: Tensor, *, rtol: Tolerance = None, atol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        """A⁺, and the factors with which `pinv_backward` will be called; as `factor`."""
        inverse = self.factor(matrix, rtol=rtol, atol=atol)
        return inverse.dense(), inverse

    def least_squares(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        """X = A⁺B, and the factors with which `lstsq_backward` will be called.

        Args:
            matrix: A, (..., m, n).
            rhs: B, (..., m, k).
            rtol: as in `factor`.

        Raises:
            torch.linalg.LinAlgError: as in `factor`.
        """
        inverse = self.factor(matrix, rtol=rtol)
        return inverse.apply(rhs), inverse

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        """`factor` of a square matrix that must be nonsingular: no singular value is cut off.

        Raises:
            torch.linalg.LinAlgError: a matrix is singular.
        """
        inverse = self.factor(matrix, rtol=0.0, atol=0.0)
        if not inverse.full_column_rank:
            raise_if_singular(inverse.rank < matrix.shape[-1], self.name, "it has no inverse")
        return inverse

    def factor_triangle(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        """`factor` of a nonsingular triangular matrix: no singular value is cut off."""
        return self.factor(matrix, structure, rtol=0.0, atol=0.0)

    def __repr__(self) -> str:
        return f"<strategy {self.name}>"


def rank_threshold(scale: Tensor, shape: torch.Size, rtol: Tolerance, atol: Tolerance) -> Tensor:
    """Below what a singular value (or a diagonal entry that stands for one) counts as zero.

    Args:
        scale: the largest singular value or its stand-in, of the batch shape.
        shape: of the matrices.
        rtol: relative tolerance; None: max(m, n)·ε where atol is None or 0 too, else 0.
        atol: absolute tolerance.

    Returns:
        max(atol, rtol · scale), of the batch shape.
    """
    if rtol is None:
        has_atol = isinstance(atol, Tensor) or bool(atol)
        rtol = 0.0 if has_atol else max(shape[-2:]) * torch.finfo(scale.dtype).eps
    threshold = rtol * scale
    return threshold if atol is None else torch.maximum(threshold, torch.as_tensor(atol).to(scale))
