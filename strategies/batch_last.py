"""Large batches of small matrices: one column at a time over storage with the batch innermost."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.formulas.lu import permute_rows
from strategies.triangular_solve import TriangularSolve

__all__ = ["BatchLast"]

_CHUNK = 8192  # matrices at a time: bounds the copies; measured as fast as a whole batch of 100 000

_LARGEST = 64  # columns reversed one by one: from half of this on, blocks are faster at any batch


class BatchLast(TriangularSolve):
    """The reverse of LU unrolled to single columns, each step one long elementwise pass.

    With blocks of one column the reverse in `blocked_lu` has no small factorizations, solves or
    products left, only scalar recurrences, which are the same for every matrix of a batch. Stored
    with the batch innermost, n² fused multiply-adds over vectors as long as the batch replace a loop
    over the matrices. All other operations are those of `triangular_solve`.

    Example:
        >>> import torch, strategies
        >>> A = torch.eye(2).repeat(3, 1, 1).requires_grad_()
        >>> strategies.linalg.lu_factor(A, strategy="batch_last").LU.sum().backward()
        >>> A.grad[2].tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    name = "batch_last"
    summary = "LU reversed column by column, batch innermost; otherwise triangular_solve"

    def lu_backward(self, LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
        m, n = LU.shape[-2:]
        if min(m, n) > _LARGEST:
            return super().lu_backward(LU, inverse_order, cotangent)
        gradient = torch.empty_like(cotangent, memory_format=torch.contiguous_format)
        if gradient.numel() == 0:
            return gradient
        parts = (torch.split(tensor.reshape(-1, m, n), _CHUNK) for tensor in (LU, cotangent))
        results = torch.split(gradient.view(-1, m, n), _CHUNK)
        for factors, bar, result in zip(*parts, results, strict=True):
            result.copy_(_batch_first(_reverse(_batch_last(factors), _batch_last(bar))))
        return permute_rows(gradient, inverse_order)


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
