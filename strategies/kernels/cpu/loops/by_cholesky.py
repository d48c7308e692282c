"""Small positive definite matrices: their Cholesky factor, and what is solved with one.

The formulas are those of `strategies.formulas.cholesky`. Each loop goes from matrix to matrix, and reports
one that is not positive definite, has a zero on the diagonal of its factor, or a norm that is far from
one; and a cotangent that is not finite or at the end of the range. Nothing is read then of what it has
written.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    factor_positive_definite,
    invert_positive_definite,
    subtract_adjoint_times_transpose,
    write_adjoint_product,
    write_minus_adjoint_times_transpose,
)
from strategies.kernels.cpu.limits import FEW_RIGHT_HAND_SIDES
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    matrices,
    packed,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.cholesky import reverse, scratch_of_blocks
from strategies.kernels.cpu.loops.columns import (
    copy_near_one,
    copy_to,
    empty,
    fill_with_identity,
    is_near_one,
    moderate_squares,
    multiply,
    normalize,
    solve_lower_adjoint_in_place,
    solve_lower_in_place,
    squares_if_moderate,
    sum_of_all_squares,
)
from strategies.kernels.cpu.loops.condition import sum_of_squares
from strategies.kernels.cpu.loops.small import (
    MOST_OF_SUBSTITUTION,
    solve_lower_adjoint_small,
    solve_lower_small,
)

_TILE = 8
"""Rows and columns."""


@compiled
def _clear_above(L: Array) -> None:
    for j in range(1, len(L)):
        L[:j, j] = 0


def cholesky(task: Task) -> None:
    """L by columns, with zeros above its diagonal."""
    A, L = matrices(task, 0), contiguous(task, 1)
    for i in single_matrices(task):
        if not _factor(A[i], L[i].T):
            report(task)


@compiled
def _factor(A: Array, L: Array) -> bool:
    copy_to(L, A)
    _clear_above(L)
    info = np.zeros(1, np.int32)
    factor_positive_definite(L, info)
    trace = sum_of_all_squares(L)  # of A, whose norm lies between it and it over √n
    return bool(info[0] == 0 and squares_if_moderate(L, trace * trace) >= 0)


def cholesky_backward(task: Task) -> None:
    """The Hermitian gradient."""
    # Of one type, for which `reverse` is compiled once.
    L, G, result = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    scratch = scratch_of_blocks(L)
    for i in single_matrices(task):
        if is_near_one(G[i]):
            reverse(L[i].T, G[i], result[i].T, scratch)
            continue
        power = copy_near_one(result[i], G[i])
        if power == 0:
            report(task)
            continue
        reverse(L[i].T, result[i], result[i].T, scratch)
        multiply(result[i], power)


@compiled
def _scratch_of_factors(L: Array) -> Array:
    """What `_packed` works in."""
    is_packed = L.strides[1] == L.itemsize or L.strides[2] == L.itemsize
    n = 0 if is_packed else L.shape[1]
    return empty(n, n, L)


@compiled
def _packed(L: Array, scratch: Array) -> Array:
    """A factor where it lies, if its columns or its rows lie one after the other; else a copy."""
    if scratch.size == 0:
        return L
    copy_to(scratch, L)
    return scratch


@compiled
def _is_usual(L: Array) -> bool:
    """Whether a factor that is packed has a moderate norm, and no zero on its diagonal."""
    squares, is_by_columns = 0.0, L.strides[0] == L.itemsize
    for j in range(len(L)):
        if L[j, j] == 0:
            return False
        squares += sum_of_squares(packed(L.T[j, j:] if is_by_columns else L[j, : j + 1]))
    return bool(squares_if_moderate(L, squares) >= 0)


def solve(task: Task) -> None:
    """X = L⁻ᴴ L⁻¹ B by columns, and L⁻¹ B row after row."""
    L, B, X, half = matrices(task, 0), matrices(task, 1), contiguous(task, 2), contiguous(task, 3)
    scratch = _scratch_of_factors(L)
    for i in single_matrices(task):
        if not _solve(_packed(L[i], scratch), B[i], X[i].T, half[i]):
            report(task)


@compiled
def _solve(L: Array, B: Array, X: Array, half: Array) -> bool:
    copy_to(X, B)
    if not _is_usual(L) or moderate_squares(X) < 0:
        return False
    solve_lower_in_place(L, X)
    copy_to(half, X)
    solve_lower_adjoint_in_place(L, X)
    return True


def solve_backward(task: Task) -> None:
    """B̄ = W = L⁻ᴴ L⁻¹ G and −W (L⁻¹ B)ᴴ − X (L⁻¹ G)ᴴ."""
    L, X, half, G = matrices(task, 0), contiguous(task, 1), contiguous(task, 2), matrices(task, 3)
    result, rhs_result = contiguous(task, 4), contiguous(task, 5)
    n, k = half.shape[1:]
    scratch, W, of_cotangent = _scratch_of_factors(L), empty(n, k, L), empty(k, n, L)
    for i in single_matrices(task):
        power = copy_near_one(W, G[i])
        if power == 0:
            report(task)
            continue
        factor = _packed(L[i], scratch)
        solve_lower_in_place(factor, W)
        copy_to(of_cotangent, W.T)
        solve_lower_adjoint_in_place(factor, W)
        copy_to(rhs_result[i], W)
        _write_products(result[i].T, half[i].T, W, of_cotangent, X[i].T)
        multiply(rhs_result[i], power)
        multiply(result[i], power)


@compiled
def _write_products(M: Array, A: Array, B: Array, C: Array, D: Array) -> None:
    """M ← −AᴴBᵀ − CᴴDᵀ."""
    if B.shape[1] <= FEW_RIGHT_HAND_SIDES:
        _write_products_of_few(M, A, B, C, D)
        return
    write_minus_adjoint_times_transpose(M, A, B)
    subtract_adjoint_times_transpose(M, C, D)


@compiled
def _write_products_of_few(M: Array, A: Array, B: Array, C: Array, D: Array) -> None:
    """The same of few rows, column by column."""
    k, n = A.shape
    rows = np.empty((2 * k, n), A.dtype)
    for q in range(k):
        for r in range(n):
            rows[q, r], rows[k + q, r] = -np.conj(A[q, r]), -np.conj(C[q, r])
    for j in range(n):
        column = M.T[j]
        for r in range(n):
            column[r] = 0
        for q in range(k):
            first, second, b, d = rows[q], rows[k + q], B[j, q], D[j, q]
            for r in range(n):
                column[r] += first[r] * b + second[r] * d


def inverse(task: Task) -> None:
    """X = L⁻ᴴ L⁻¹, by columns."""
    L, X = matrices(task, 0), contiguous(task, 1)
    scratch = _scratch_of_factors(L)
    for i in single_matrices(task):
        if not _inverse(_packed(L[i], scratch), X[i].T):
            report(task)


@compiled
def _inverse(L: Array, X: Array) -> bool:
    if not _is_usual(L):
        return False
    if X.size <= MOST_OF_SUBSTITUTION:
        fill_with_identity(X)
        solve_lower_small(L, X)
        solve_lower_adjoint_small(L, X)
    else:
        copy_to(X, L)
        info = np.zeros(1, np.int32)
        invert_positive_definite(X, info)
    _mirror_lower(X)
    return True


@compiled
def _mirror_lower(A: Array) -> None:
    """Make A Hermitian, tile by tile; what is above the diagonal is overwritten."""
    n = len(A)
    for first in range(0, n, _TILE):
        for j in range(first + 1, n):
            for i in range(first, min(first + _TILE, j)):
                A[i, j] = np.conj(A[j, i])


def inverse_backward(task: Task) -> None:
    """−(L⁻¹ (Ḡ + Ḡᴴ) X)ᴴ."""
    L, X = matrices(task, 0), contiguous(task, 1)
    G, result = matrices(task, 2), contiguous(task, 3)
    n = X.shape[1]
    scratch, both = _scratch_of_factors(L), empty(n, n, X)
    for i in single_matrices(task):
        _write_sum_with_adjoint(both, G[i])
        power = normalize(both)
        if power == 0:
            report(task)
            continue
        # The conjugate first. Of a Hermitian matrix columns are rows, and faster to multiply by.
        conjugate = result[i].T
        write_adjoint_product(conjugate, both, X[i].T)
        solve_lower_in_place(_packed(L[i], scratch), conjugate)
        for j in range(n):
            for r in range(n):
                conjugate[r, j] = -np.conj(conjugate[r, j])
        multiply(result[i], power)


@compiled
def _write_sum_with_adjoint(S: Array, G: Array) -> None:
    """S = G + Gᴴ, tile by tile, so that both are read along lines of the cache."""
    n = len(G)
    for first_row in range(0, n, _TILE):
        for first in range(0, first_row + 1, _TILE):
            for i in range(first_row, min(first_row + _TILE, n)):
                for j in range(first, min(first + _TILE, i + 1)):
                    S[i, j] = G[i, j] + np.conj(G[j, i])
                    S[j, i] = np.conj(S[i, j])
