"""Batches of small matrices: scalar recurrences over storage with the batch innermost."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.builtin.triangular_solve import TriangularSolve
from strategies.factors import LUFactors, Orthogonal, Reflected, Triangular
from strategies.formulas.lu import permute_rows, reverse_flops
from strategies.interface import Tolerance
from strategies.kernels import cuda
from strategies.kernels.cpu import launch, small, tall
from strategies.pseudo_inverse import PseudoInverse

__all__ = ["BatchLast"]

_CHUNK = 8192  # matrices at a time: bounds the copies; measured as fast as a whole batch of 100 000

# Columns from which on library calls are faster at any batch, as measured.
_LARGEST = 64
_LARGEST_WITH_FEW_RIGHT_HAND_SIDES = 16

# Of tall matrices; with fewer entries the batch is innermost, with more right-hand sides the products
# are a library's, as measured.
_FEW_ENTRIES = 1024
_FEW_RIGHT_HAND_SIDES = 4


class BatchLast(TriangularSolve):
    """The formulas unrolled to single numbers, each step the same for all matrices of a batch.

    A batched library call loops over the matrices and, where they are small, spends its time on
    calling and on vectors too short. With the batch innermost the vectors are as long as the
    machine likes and nothing is called. On the CPU a backward is one compiled pass over groups of
    matrices (`strategies.kernels.cpu`) in as many threads as torch uses, compiled at its first use for
    each dtype (seconds; kept on disk). The rows of a tall matrix are a batch, too, for least squares
    with few right-hand sides (`strategies.kernels.cpu.tall`). The forward of solve, inv, pinv and lstsq
    is another such pass where that is faster (`strategies.kernels.cpu.small`). On CUDA the backward of
    LU, solve and inv of real matrices up to 32×32 is one kernel (`strategies.kernels.cuda`), if Triton is
    there; other LUs are unrolled to elementwise operations of torch. All else is that of `triangular_solve`.

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

    def lu_backward(self, LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
        if cuda.takes(LU):
            return cuda.lu(LU, inverse_order, cotangent)
        if not _is_small(LU):
            return super().lu_backward(LU, inverse_order, cotangent)
        gradient = torch.empty_like(cotangent, memory_format=torch.contiguous_format)
        *batch, m, n = LU.shape
        if LU.device.type == "cpu":
            launch("lu", reverse_flops(m, n), batch, LU, inverse_order, cotangent, gradient)
            return gradient
        parts = (torch.split(tensor.reshape(-1, m, n), _CHUNK) for tensor in (LU, cotangent))
        results = torch.split(gradient.view(-1, m, n), _CHUNK)
        for factors, bar, result in zip(*parts, results, strict=True):
            result.copy_(_batch_first(_reverse(_batch_last(factors), _batch_last(bar))))
        return permute_rows(gradient, inverse_order)

    def pinv_backward(self, inverse: PseudoInverse, matrix: Tensor, cotangent: Tensor) -> Tensor:
        m, n = matrix.shape[-2:]
        if m < n:
            return self.pinv_backward(inverse.adjoint, matrix.mH, cotangent.mH).mH
        if m == n:
            return self.inv_backward(inverse, cotangent)
        if not (
            isinstance(inverse, Orthogonal)
            and isinstance(inverse.core, Triangular)
            and _is_small_on_cpu(matrix)
        ):
            return super().pinv_backward(inverse, matrix, cotangent)
        gradient = torch.empty_like(matrix, memory_format=torch.contiguous_format)
        flops = 6 * m * n**2 + 6 * n**3
        arguments = (inverse.left, inverse.core.factor, cotangent, gradient)
        launch("pinv", flops, matrix.shape[:-2], *arguments)
        return gradient

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
        if isinstance(inverse, LUFactors):
            return self.solve_backward(inverse, solution, cotangent, need_matrix=need_matrix)
        if not (need_matrix and isinstance(inverse, Reflected)):
            return super().lstsq_backward(
                inverse, matrix, rhs, solution, cotangent, need_matrix=need_matrix
            )
        if _has_many_rows(matrix, rhs):
            w = inverse.corrected_gram(cotangent, lambda w: tall.gram_product(matrix, w))
            return tall.lstsq_gradients(w, matrix, rhs, solution)
        if not _is_small_on_cpu(matrix, _LARGEST_WITH_FEW_RIGHT_HAND_SIDES):
            return super().lstsq_backward(inverse, matrix, rhs, solution, cotangent)
        gradient = torch.empty_like(matrix, memory_format=torch.contiguous_format)
        rhs_gradient = torch.empty_like(rhs, memory_format=torch.contiguous_format)
        m, n = matrix.shape[-2:]
        flops = (12 * m * n + 4 * n**2) * rhs.shape[-1]
        launch(
            "lstsq",
            flops,
            matrix.shape[:-2],
            *(inverse.packed_R, matrix, rhs, solution, cotangent, rhs_gradient, gradient),
        )
        return gradient, rhs_gradient

    def solve_backward(
        self,
        inverse: PseudoInverse,
        solution: Tensor,
        cotangent: Tensor,
        *,
        need_matrix: bool = True,
    ) -> tuple[Tensor | None, Tensor]:
        if not (need_matrix and isinstance(inverse, LUFactors)):
            return super().solve_backward(inverse, solution, cotangent, need_matrix=need_matrix)
        LU = inverse.LU
        if cuda.takes(LU, solution):
            return cuda.solve(LU, inverse.pivots, solution, cotangent)
        if not _is_small_on_cpu(LU, _LARGEST_WITH_FEW_RIGHT_HAND_SIDES):
            return super().solve_backward(inverse, solution, cotangent, need_matrix=need_matrix)
        gradient = torch.empty_like(LU, memory_format=torch.contiguous_format)
        rhs_gradient = torch.empty_like(cotangent, memory_format=torch.contiguous_format)
        flops = 4 * LU.shape[-1] ** 2 * cotangent.shape[-1]
        arguments = (LU, inverse.pivots, solution, cotangent, rhs_gradient, gradient)
        launch("solve", flops, LU.shape[:-2], *arguments)
        return gradient, rhs_gradient

    def inv_backward(self, inverse: PseudoInverse, cotangent: Tensor) -> Tensor:
        if not isinstance(inverse, LUFactors):
            return super().inv_backward(inverse, cotangent)
        if cuda.takes(inverse.LU):
            return cuda.inv(inverse.LU, inverse.pivots, cotangent)
        if not _is_small_on_cpu(inverse.LU):
            return super().inv_backward(inverse, cotangent)
        gradient = torch.empty_like(cotangent, memory_format=torch.contiguous_format)
        *batch, n, _ = cotangent.shape
        launch("inv", 4 * n**3, batch, inverse.LU, inverse.pivots, cotangent, gradient)
        return gradient

    def det_backward(self, LU: Tensor, inverse_order: Tensor, scale: Tensor) -> Tensor:
        if not _is_small_on_cpu(LU):
            return super().det_backward(LU, inverse_order, scale)
        gradient = torch.empty_like(LU, memory_format=torch.contiguous_format)
        *batch, n, _ = LU.shape
        arguments = (LU, inverse_order, scale[..., None, None], gradient)
        launch("inverse_adjoint", 4 / 3 * n**3, batch, *arguments)
        return gradient

    def solve(self, matrix: Tensor, rhs: Tensor) -> tuple[Tensor, PseudoInverse]:
        if rhs.numel() == 0 or not small.takes(matrix):
            return super().solve(matrix, rhs)
        X, LU, pivots, info = small.solve(matrix, rhs)
        return X, self._nonsingular(LU, pivots, info)

    def inverse(self, matrix: Tensor) -> tuple[Tensor, PseudoInverse]:
        if not small.takes(matrix):
            return super().inverse(matrix)
        result, LU, pivots, info = small.inverse(matrix)
        return result, self._nonsingular(LU, pivots, info)

    def pseudo_inverse(
        self, matrix: Tensor, *, rtol: Tolerance = None, atol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        m, n = matrix.shape[-2:]
        if not small.takes(matrix):
            return super().pseudo_inverse(matrix, rtol=rtol, atol=atol)
        if m < n:
            result, inverse = self.pseudo_inverse(matrix.mH, rtol=rtol, atol=atol)
            return result.mH, inverse.adjoint
        if m == n:
            result, LU, pivots, _ = small.inverse(matrix)
            return result, self._by_lu(LU, pivots, rtol, atol)
        result, Q, R = small.pseudo_inverse(matrix)
        return result, self._by_qr(Q, R, rtol, atol)

    def least_squares(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        m, n = matrix.shape[-2:]
        if rhs.numel() == 0 or not small.takes(matrix):
            return super().least_squares(matrix, rhs, rtol=rtol)
        if m == n:
            X, LU, pivots, _ = small.solve(matrix, rhs)
            return X, self._by_lu(LU, pivots, rtol, None)
        if not Reflected.pays(matrix, rhs):
            return super().least_squares(matrix, rhs, rtol=rtol)
        X, reflectors, scales = small.least_squares(matrix, rhs)
        inverse = Reflected(matrix, reflectors, scales)
        self._refuse_singular(inverse.packed_R, matrix.shape, rtol, None)
        return X, inverse


def _is_small(matrix: Tensor, largest: int = _LARGEST) -> bool:
    m, n = matrix.shape[-2:]
    return min(m, n) <= largest and m * n <= _LARGEST**2 and matrix.numel() > 0


def _is_small_on_cpu(matrix: Tensor, largest: int = _LARGEST) -> bool:
    return matrix.device.type == "cpu" and _is_small(matrix, largest)


def _has_many_rows(matrix: Tensor, rhs: Tensor) -> bool:
    m, n = matrix.shape[-2:]
    is_there = matrix.device.type == "cpu" and matrix.is_contiguous() and rhs.numel() > 0
    return is_there and m * n > _FEW_ENTRIES and rhs.shape[-1] <= _FEW_RIGHT_HAND_SIDES


def _batch_last(matrices: Tensor) -> Tensor:
    """(b, m, n) -> (m, n, b), by a transpose of two dimensions, which torch does in cache blocks."""
    if matrices.stride(-2) == 1:  # the column-major matrices that LAPACK leaves
        return _batch_last_row_major(matrices.mT).transpose(0, 1)
    return _batch_last_row_major(matrices)


def _batch_last_row_major(matrices: Tensor) -> Tensor:
    count, rows, columns = matrices.shape
    return (
        matrices.reshape(count, -1)
        .t()
        .clone(memory_format=torch.contiguous_format)
        .view(rows, columns, count)
    )


def _batch_first(entries: Tensor) -> Tensor:
    m, n, count = entries.shape
    return entries.reshape(m * n, count).t().view(count, m, n)


def _reverse(LU: Tensor, bar: Tensor) -> Tensor:
    """Overwrite the cotangent of the packed factors by the gradient of PᵀA; both (m, n, batch)."""
    m, n = LU.shape[:2]
    LU = LU.conj().resolve_conj()
    for j in reversed(range(min(m, n))):
        below, right = bar[j + 1 :, j], bar[j, j + 1 :]
        L, U = LU[j + 1 :, j], LU[j, j + 1 :]
        S = bar[j + 1 :, j + 1 :]
        for c in range(n - j - 1):
            below.addcmul_(S[:, c], U[c], value=-1)
        for r in range(m - j - 1):
            right.addcmul_(S[r], L[r], value=-1)
        below.div_(LU[j, j])
        bar[j, j].sub_((L * below).sum(0))
    return bar
