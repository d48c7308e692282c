"""Small positive definite matrices: their Cholesky factor, and what is solved with one.

The formulas are those of `strategies.formulas.cholesky`. Each loop goes from matrix to matrix, and reports
one that is not positive definite, has a zero on the diagonal of its factor, or a norm that is far from
one. Nothing is read then of what it has written.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    factor_positive_definite,
    invert_positive_definite,
    solve_lower,
    solve_lower_adjoint,
    write_minus_adjoint_times_transpose,
    write_product,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    matrices,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.cholesky import reverse, scratch_of_blocks
from strategies.kernels.cpu.loops.columns import (
    by_columns,
    copy_to,
    empty,
    moderate_squares,
    squares_if_moderate,
    sum_of_all_squares,
)


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
    L, G, result = contiguous(task, 0), matrices(task, 1), contiguous(task, 2)
    scratch = scratch_of_blocks(L)
    for i in single_matrices(task):
        copy_to(result[i], G[i])
        if moderate_squares(result[i].T) < 0:
            report(task)
        else:
            reverse(L[i].T, result[i], result[i].T, scratch)


@compiled
def _is_usual(L: Array) -> bool:
    """Whether a factor has a moderate norm, and no zero on its diagonal."""
    for j in range(len(L)):
        if L[j, j] == 0:
            return False
    return bool(moderate_squares(L) >= 0)


def solve(task: Task) -> None:
    """X = L⁻ᴴ L⁻¹ B by columns."""
    L, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    for i in single_matrices(task):
        if not _solve(L[i], B[i], X[i].T):
            report(task)


@compiled
def _solve(L: Array, B: Array, X: Array) -> bool:
    F = by_columns(L)
    copy_to(X, B)
    if not _is_usual(F) or moderate_squares(X) < 0:
        return False
    solve_lower(F, X)
    solve_lower_adjoint(F, X)
    return True


def solve_backward(task: Task) -> None:
    """B̄ = W = L⁻ᴴ L⁻¹ G and the lower triangle of −W (L⁻¹ B)ᴴ − X (L⁻¹ G)ᴴ."""
    L, B, X, G = matrices(task, 0), matrices(task, 1), contiguous(task, 2), matrices(task, 3)
    result, rhs_result = contiguous(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        if not _solve_backward(L[i], B[i], X[i].T, G[i], result[i], rhs_result[i]):
            report(task)


@compiled
def _solve_backward(
    L: Array, B: Array, X: Array, G: Array, result: Array, rhs_result: Array
) -> bool:
    n, k = B.shape
    F, left, right = by_columns(L), empty(n, 2 * k, B), empty(n, 2 * k, B)
    copy_to(left[:, :k], G)
    copy_to(left[:, k:], B)
    if moderate_squares(left[:, :k]) < 0:
        return False
    solve_lower(F, left)
    copy_to(right[:, :k], X)
    copy_to(right[:, k:], left[:, :k])
    solve_lower_adjoint(F, right[:, k:])
    copy_to(rhs_result, right[:, k:])
    write_minus_adjoint_times_transpose(result.T, by_columns(left.T), right)
    _clear_above(result)
    return True


def inverse(task: Task) -> None:
    """X = L⁻ᴴ L⁻¹, by columns."""
    L, X = matrices(task, 0), contiguous(task, 1)
    for i in single_matrices(task):
        if not _inverse(L[i], X[i].T):
            report(task)


@compiled
def _inverse(L: Array, X: Array) -> bool:
    copy_to(X, L)
    if not _is_usual(X):
        return False
    info = np.zeros(1, np.int32)
    invert_positive_definite(X, info)
    for j in range(len(X)):
        for i in range(j):
            X[i, j] = np.conj(X[j, i])
    return True


def inverse_backward(task: Task) -> None:
    """The lower triangle of −(L⁻¹ (Ḡ + Ḡᴴ) X)ᴴ."""
    L, X = matrices(task, 0), contiguous(task, 1)
    G, result = matrices(task, 2), contiguous(task, 3)
    n = X.shape[1]
    both, product = empty(n, n, X), empty(n, n, X)
    for i in single_matrices(task):
        copy_to(both, G[i])
        if moderate_squares(both) < 0:
            report(task)
            continue
        _add_adjoint(both)
        write_product(product, both, X[i].T)
        solve_lower(by_columns(L[i]), product)
        _write_lower_of_minus_adjoint(result[i], product)


@compiled
def _add_adjoint(A: Array) -> None:
    for j in range(len(A)):
        for i in range(j + 1):
            A[i, j] += np.conj(A[j, i])
            A[j, i] = np.conj(A[i, j])


@compiled
def _write_lower_of_minus_adjoint(result: Array, A: Array) -> None:
    for i in range(len(A)):
        for j in range(len(A)):
            result[i, j] = -np.conj(A[j, i]) if j <= i else 0
