"""Batches of small matrices: scalar recurrences over storage with the batch innermost."""

from __future__ import annotations

from torch import Tensor

from strategies.builtin.triangular_solve import TriangularSolve, by_qr
from strategies.errors import raise_if_grown, raise_if_singular
from strategies.factors import LUFactors, Orthogonal, PackedLU, Reflected, Triangular
from strategies.factors.condition import frobenius_norms, smallest_of_LU
from strategies.interface import Saved, Tolerance
from strategies.kernels.cpu import backward, cholesky, forward, tall
from strategies.kernels.kernel import if_supported
from strategies.pseudo_inverse import PseudoInverse
from strategies.refusals import refuse_near_deficiency

__all__ = ["BatchLast"]


class BatchLast(TriangularSolve):
    """The formulas unrolled to single numbers, each step the same for all matrices of a batch.

    A batched library call loops over the matrices and, where they are small, spends its time on
    calling and on vectors too short. With the batch innermost the vectors are as long as the
    machine likes and nothing is called. On the CPU a forward or a backward is one compiled pass over
    groups of matrices (`strategies.kernels.cpu`), where that is faster, in as many threads as torch
    uses. It is compiled at its first use for each dtype, which takes seconds, and kept on disk. The
    rows of a tall matrix are a batch, too, for least squares with few right-hand sides. Everything
    else, and all on CUDA, is done as in `triangular_solve`.

    Example:
        >>> import torch, strategies
        >>> A = torch.eye(2).repeat(3, 1, 1).requires_grad_()
        >>> strategies.linalg.lu_factor(A, strategy="batch_last").LU.sum().backward()
        >>> A.grad[2].tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    name = "batch_last"
    summary = (
        "compiled loops over batches of small matrices and rows of tall; else triangular_solve"
    )

    def lu_backward(self, factors: PackedLU, cotangent: Tensor) -> Tensor:
        return if_supported(backward.lu, *factors, cotangent)

    def cholesky_backward(self, L: Tensor, cotangent: Tensor) -> Tensor:
        return if_supported(cholesky.small, L, cotangent)

    def det_backward(self, factors: PackedLU, scale: Tensor) -> Tensor:
        return if_supported(backward.det, *factors, scale)

    def inv_backward(self, saved: Saved, cotangent: Tensor) -> Tensor:
        match saved.inverse:
            case LUFactors(LU, pivots):
                return if_supported(backward.inv, LU, pivots, cotangent)
        return NotImplemented

    def solve_backward(
        self, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        match saved.inverse:
            case LUFactors(LU, pivots) if need_matrix:
                tensors = LU, pivots, saved.result, cotangent
                return if_supported(backward.solve, *tensors)
        return NotImplemented

    def pinv_backward(self, saved: Saved, cotangent: Tensor) -> Tensor:
        m, n = saved.matrix.shape[-2:]
        if m < n:
            tall_one = Saved(saved.inverse.adjoint, (saved.matrix.mH,), (saved.result.mH,))
            gradient = self.pinv_backward(tall_one, cotangent.mH)
            return gradient if gradient is NotImplemented else gradient.mH
        match saved.inverse:
            case LUFactors():
                return self.inv_backward(saved, cotangent)
            case Orthogonal(Q, Triangular(R)):
                return if_supported(backward.pinv, Q, R, cotangent)
        return NotImplemented

    def lstsq_backward(
        self, saved: Saved, cotangent: Tensor, *, need_matrix: bool = True
    ) -> tuple[Tensor | None, Tensor]:
        A, B, X = saved.matrix, saved.rhs, saved.result
        match saved.inverse:
            case LUFactors():
                return self.solve_backward(saved, cotangent, need_matrix=need_matrix)
            case Reflected() as inverse if need_matrix and tall.supports(A, B):
                w = inverse.corrected_gram(cotangent, lambda w: tall.gram_product(A, w))
                return tall.lstsq_gradients(w, A, B, X)
            case Reflected(packed_R=R) if need_matrix:
                return if_supported(backward.lstsq, R, A, B, X, cotangent)
        return NotImplemented

    def inv_forward(self, matrix: Tensor) -> tuple[Tensor, PseudoInverse]:
        if not forward.inv.supports(matrix):
            return NotImplemented
        result, *factors = forward.inv(matrix)
        return result, self._nonsingular(*factors)

    def solve_forward(self, matrix: Tensor, rhs: Tensor) -> tuple[Tensor, PseudoInverse]:
        if not forward.solve.supports(matrix, rhs):
            return NotImplemented
        X, *factors = forward.solve(matrix, rhs)
        return X, self._nonsingular(*factors)

    def pinv_forward(
        self, matrix: Tensor, *, rtol: Tolerance = None, atol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        m, n = matrix.shape[-2:]
        if not forward.pinv.supports(matrix):
            return NotImplemented
        if m < n:
            found = self.pinv_forward(matrix.mH, rtol=rtol, atol=atol)
            return found if found is NotImplemented else (found[0].mH, found[1].adjoint)
        result, *factors = forward.inv(matrix) if m == n else forward.pinv(matrix)
        smallest = frobenius_norms(result).reciprocal()
        refuse_near_deficiency(smallest, matrix, rtol, atol, self.name)
        return result, self._nonsingular(*factors) if m == n else by_qr(*factors)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        m, n = matrix.shape[-2:]
        if not forward.lstsq.supports(matrix, rhs):
            return super().lstsq_forward(matrix, rhs, rtol=rtol)
        if m == n:
            X, LU, pivots, info = forward.solve(matrix, rhs)
            refuse_near_deficiency(smallest_of_LU(LU, pivots), matrix, rtol, None, self.name)
            return X, self._nonsingular(LU, pivots, info)
        if not Reflected.pays(matrix, rhs):
            return NotImplemented
        X, reflectors, scales, smallest = forward.lstsq(matrix, rhs)
        refuse_near_deficiency(smallest, matrix, rtol, None, self.name)
        return X, Reflected(matrix, reflectors, scales)

    def _nonsingular(self, LU: Tensor, pivots: Tensor, info: Tensor) -> LUFactors:
        """The inverse by factors of which `info` tells as `kernels.cpu.forward.solve` does."""
        if bool(info.any()):
            raise_if_singular(info > 0, self.name, "it has no inverse")
            raise_if_grown(info < 0, self.name)
        return LUFactors(LU, pivots)
