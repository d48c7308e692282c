"""Pseudo-inverses and least squares of small matrices of any rank, from a truncated SVD.

A = U diag(s) Vᴴ, cut after the r singular values that count. What is kept are U and Vᴴ, column after
column, with all min(m, n) singular vectors. Each loop goes from matrix to matrix, and reports one whose
norm is far from one, or whose longer side has rows or columns that differ much in length: an SVD is
accurate beside the longest of them.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    decompose,
    subtract_adjoint_product,
    subtract_adjoint_times_transpose,
    subtract_product,
    subtract_product_with_adjoint,
    write_adjoint_product,
    write_adjoint_times_transpose,
    write_product,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    integers,
    matrices,
    reals,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import (
    by_columns,
    copy_to,
    empty,
    moderate_columns,
    multiply,
    normalize,
)
from strategies.kernels.cpu.loops.condition import sum_of_squares

_ALIKE = 64.0
"""How many times longer than another a row or column may be that is like it."""


@compiled
def _rank_of(A: Array, U: Array, s: Array, Vh: Array) -> int:
    """Write the SVD; how many singular values are above max(m, n) ε of the first, or zero if it fails."""
    (m, n), k = A.shape, len(s)
    F, total = moderate_columns(A)
    if not (total > 0 and (m < n or _are_alike(F)) and (m > n or _are_alike(F.T))):
        return 0
    # What LAPACK asks for at least, and blocks of 64 columns.
    scratch = np.empty(5 * k * k + 16 * k + 64 * (m + n), A.dtype)
    of_reals = np.empty(5 * k * k + 5 * k + 2 * k * (m + n), s.dtype)
    of_integers, info = np.empty(8 * k, np.int32), np.zeros(1, np.int32)
    decompose(F, s, U, Vh, scratch, of_reals, of_integers, info)
    if info[0] != 0:
        return 0
    threshold = max(m, n) * np.finfo(s.dtype).eps * s[0]
    return int((s > threshold).sum())


@compiled
def _are_alike(F: Array) -> bool:
    """Whether no column is much longer than another."""
    least, most = np.inf, 0.0
    for j in range(F.shape[1]):
        squares = sum_of_squares(F[:, j])
        least, most = min(least, squares), max(most, squares)
    return most <= _ALIKE**2 * least


@compiled
def _times_diagonal(A: Array, diagonal: Array) -> Array:
    """A copy with each column multiplied, or divided by the reciprocal."""
    result = by_columns(A)
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            result[i, j] *= diagonal[j]
    return result


@compiled
def _divide_rows(A: Array, divisors: Array) -> None:
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            A[i, j] /= divisors[i]


@compiled
def _conjugate(A: Array) -> None:
    for j in range(A.shape[1]):
        for i in range(A.shape[0]):
            A[i, j] = np.conj(A[i, j])


def pinv(task: Task) -> None:
    """A⁺, row after row; U, V, s and the rank."""
    A, X = matrices(task, 0), contiguous(task, 1)
    U, V, s, rank = contiguous(task, 2), contiguous(task, 3), reals(task, 4), integers(task, 5)
    for i in single_matrices(task):
        r = _rank_of(A[i], U[i].T, s[i], V[i].T)
        rank[i, 0] = r
        if r == 0:
            report(task)
            continue
        write_product(X[i].T, _times_diagonal(U[i].T[:, :r], 1 / s[i, :r]), V[i].T[:r])
        _conjugate(X[i].T)


def lstsq(task: Task) -> None:
    """X = A⁺B, row after row, squared residuals, the rank, s; U and V."""
    A, B, X, residuals = matrices(task, 0), matrices(task, 1), contiguous(task, 2), reals(task, 3)
    rank, s, U, V = integers(task, 4), reals(task, 5), contiguous(task, 6), contiguous(task, 7)
    for i in single_matrices(task):
        rank[i, 0] = _lstsq(A[i], B[i], X[i], U[i].T, s[i], V[i].T)
        if rank[i, 0] == 0:
            report(task)
            continue
        rest = by_columns(B[i])
        subtract_product(rest, by_columns(A[i]), by_columns(X[i]))
        for j in range(rest.shape[1]):
            residuals[i, j] = sum_of_squares(rest.T[j])


def lstsq_without_residuals(task: Task) -> None:
    """The same of matrices that are not tall."""
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    rank, s, U, V = integers(task, 3), reals(task, 4), contiguous(task, 5), contiguous(task, 6)
    for i in single_matrices(task):
        rank[i, 0] = _lstsq(A[i], B[i], X[i], U[i].T, s[i], V[i].T)
        if rank[i, 0] == 0:
            report(task)


@compiled
def _lstsq(A: Array, B: Array, X: Array, U: Array, s: Array, Vh: Array) -> int:
    """The rank; zero if it cannot be told."""
    F, squares = moderate_columns(B)
    r = _rank_of(A, U, s, Vh) if squares >= 0 else 0
    if r > 0:
        coordinates, solution = empty(r, B.shape[1], B), empty(*X.shape, X)
        write_adjoint_product(coordinates, U[:, :r], F)
        _divide_rows(coordinates, s)
        write_adjoint_product(solution, Vh[:r], coordinates)
        copy_to(X, solution)
    return r


def pinv_backward(task: Task) -> None:
    """The formula of `strategies.formulas.pinv`; the gradient is written row after row."""
    U, V, s, rank = contiguous(task, 0), contiguous(task, 1), reals(task, 2), integers(task, 3)
    G, result = matrices(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        r = rank[i, 0]
        if not _pinv_backward(U[i].T[:, :r], s[i, :r], V[i].T[:r], G[i], result[i].T):
            report(task)


@compiled
def _pinv_backward(U: Array, s: Array, Vh: Array, G: Array, result: Array) -> bool:
    """Write the transpose of Ā, where P = G U, Q = VᴴG, C = VᴴG U, and s is a diagonal matrix.

    Āᴴ = V (s⁻² (Q − C Uᴴ) − s⁻¹ Cᴴ s⁻¹ Uᴴ) + (P − V C) s⁻² Uᴴ
    """
    H = by_columns(G)
    power = normalize(H)
    if power == 0:
        return False
    (n, m), r = G.shape, len(s)
    P, Q, C = empty(n, r, G), empty(r, m, G), empty(r, r, G)
    write_product(P, H, U)
    write_product(Q, Vh, H)
    write_product(C, Vh, P)
    subtract_adjoint_product(P, Vh, C)
    for j in range(r):
        for i in range(n):
            P[i, j] *= -1 / s[j] / s[j]
    both = empty(r, r, G)
    for j in range(r):
        for i in range(r):
            both[i, j] = C[i, j] / s[i] / s[i] + np.conj(C[j, i]) / s[i] / s[j]
    _divide_rows(Q, s)
    _divide_rows(Q, s)
    subtract_product_with_adjoint(Q, both, U)
    write_adjoint_product(result, Vh, Q)
    subtract_product_with_adjoint(result, P, U)
    _conjugate(result)
    multiply(result, power)
    return True


def lstsq_backward(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq`; gradients are written row after row."""
    B, X, rank, s = matrices(task, 0), contiguous(task, 1), integers(task, 2), reals(task, 3)
    U, V, G = contiguous(task, 4), contiguous(task, 5), matrices(task, 6)
    result, rhs_result = contiguous(task, 7), contiguous(task, 8)
    for i in single_matrices(task):
        r = rank[i, 0]
        factors = U[i].T[:, :r], s[i, :r], V[i].T[:r]
        if not _lstsq_backward(B[i], X[i], *factors, G[i], result[i].T, rhs_result[i]):
            report(task)


@compiled
def _lstsq_backward(
    B: Array,
    X: Array,
    U: Array,
    s: Array,
    Vh: Array,
    G: Array,
    result: Array,
    rhs_result: Array,
) -> bool:
    """The transpose of Ā = −Z Xᴴ + R wᴴ + Y Nᴴ is written, and B̄ = Z."""
    N = by_columns(G)
    power = normalize(N)
    if power == 0:
        return False
    r, (m, k) = len(s), B.shape
    along, Z, w = empty(r, k, B), empty(m, k, B), empty(*G.shape, B)
    write_product(along, Vh, N)
    subtract_adjoint_product(N, Vh, along)
    _divide_rows(along, s)
    write_product(Z, U, along)
    copy_to(rhs_result, Z)
    _divide_rows(along, s)
    write_adjoint_product(w, Vh, along)
    R = by_columns(B)
    write_adjoint_product(along, U, R)
    subtract_product(R, U, along)
    write_product(along, Vh, by_columns(X))
    _divide_rows(along, -s)
    Y = empty(m, k, B)
    write_product(Y, U, along)
    write_adjoint_times_transpose(result, by_columns(w.T), R)
    subtract_adjoint_times_transpose(result, X.T, Z)
    subtract_adjoint_times_transpose(result, by_columns(N.T), Y)
    multiply(rhs_result, power)
    multiply(result, power)
    return True
