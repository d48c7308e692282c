"""Cholesky factors of few rows, and what is solved with them, as `tiny` does it.

Each loop is that of the same name in `by_cholesky`.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    contiguous,
    inlined,
    matrices,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import multiply, squares_if_moderate
from strategies.kernels.cpu.loops.tiny import brought_near_one, copy_to, sum_of_squares


def cholesky(task: Task, n: int) -> None:
    """`by_cholesky.cholesky`."""
    A, L = matrices(task, 0), contiguous(task, 1)
    F = np.zeros((n, n), L.dtype)
    for i in single_matrices(task):
        _copy_lower(F, A[i], n)
        is_definite = _factor(F, n)
        trace = sum_of_squares(F, n, n)  # of A, as in `by_cholesky`
        if not is_definite or squares_if_moderate(F, trace * trace) < 0:
            report(task)
            continue
        copy_to(L[i].T, F, n, n)


@inlined
def _factor(F: Array, n: int) -> bool:
    """A = L Lᴴ in place, the lower triangle; False where a pivot is not positive."""
    is_definite = True
    for c in range(n):
        pivot = F[c, c].real
        for k in range(c):
            pivot -= F[c, k].real * F[c, k].real + F[c, k].imag * F[c, k].imag
        is_definite &= pivot > 0
        F[c, c] = np.sqrt(pivot)
        reciprocal = 1 / F[c, c].real
        for r in range(c + 1, n):
            entry = F[r, c]
            for k in range(c):
                entry -= F[r, k] * np.conj(F[c, k])
            F[r, c] = entry * reciprocal
    return is_definite


def cholesky_backward(task: Task, n: int) -> None:
    """`by_cholesky.cholesky_backward`."""
    L, G, result = contiguous(task, 0), matrices(task, 1), matrices(task, 2)
    F, T = np.empty((n, n), L.dtype), np.zeros((n, n), L.dtype)
    for i in single_matrices(task):
        copy_to(F, L[i].T, n, n)
        _copy_lower(T, G[i], n)
        power = brought_near_one(T, n, n)
        if power == 0:
            report(task)
            continue
        _reverse(F, T, n)
        for r in range(n):
            for c in range(r):
                result[i, r, c] = T[r, c]
                result[i, c, r] = np.conj(T[r, c])
            result[i, r, r] = T[r, r]
        multiply(result[i], power)


@inlined
def _reverse(L: Array, T: Array, n: int) -> None:
    """The lower triangle of the gradient in place of that of the cotangent: `cholesky.small`."""
    for j in range(n - 1, -1, -1):
        diagonal, reciprocal = T[j, j].real / 2, 1 / L[j, j].real
        for r in range(j + 1, n):
            entry = T[r, j] / 2 - T[r, r].real * L[r, j]
            for c in range(j + 1, r):
                entry -= T[r, c] * L[c, j]
            for c in range(r + 1, n):
                entry -= np.conj(T[c, r]) * L[c, j]
            T[r, j] = entry * reciprocal
        for r in range(j + 1, n):
            diagonal -= (np.conj(L[r, j]) * T[r, j]).real
        T[j, j] = diagonal * reciprocal


def solve(task: Task, n: int) -> None:
    """`by_cholesky.solve`."""
    L, B, X, half = matrices(task, 0), matrices(task, 1), contiguous(task, 2), contiguous(task, 3)
    k = half.shape[2]
    F, Y = np.zeros((n, n), X.dtype), np.empty((n, k), X.dtype)
    for i in single_matrices(task):
        _copy_lower(F, L[i], n)
        copy_to(Y, B[i], n, k)
        if not _is_usual(F, n) or squares_if_moderate(Y, sum_of_squares(Y, n, k)) < 0:
            report(task)
            continue
        _substitute(F, Y, n)
        copy_to(half[i], Y, n, k)
        _substitute_adjoint(F, Y, n)
        copy_to(X[i].T, Y, n, k)


def solve_backward(task: Task, n: int) -> None:
    """`by_cholesky.solve_backward`."""
    L, X, half, G = matrices(task, 0), contiguous(task, 1), contiguous(task, 2), matrices(task, 3)
    result, rhs_result = contiguous(task, 4), contiguous(task, 5)
    k = half.shape[2]
    F, W, of_cotangent = (
        np.zeros((n, n), X.dtype),
        np.empty((n, k), X.dtype),
        np.empty((n, k), X.dtype),
    )
    for i in single_matrices(task):
        _copy_lower(F, L[i], n)
        copy_to(W, G[i], n, k)
        power = brought_near_one(W, n, k)
        if power == 0:
            report(task)
            continue
        _substitute(F, W, n)
        copy_to(of_cotangent, W, n, k)
        _substitute_adjoint(F, W, n)
        copy_to(rhs_result[i], W, n, k)
        for r in range(n):
            for c in range(n):
                total = W[r, 0] * np.conj(half[i, c, 0])
                total += X[i, 0, r] * np.conj(of_cotangent[c, 0])
                for q in range(1, k):
                    total += W[r, q] * np.conj(half[i, c, q])
                    total += X[i, q, r] * np.conj(of_cotangent[c, q])
                result[i, r, c] = -total
        multiply(rhs_result[i], power)
        multiply(result[i], power)


def inverse(task: Task, n: int) -> None:
    """`by_cholesky.inverse`."""
    L, X = matrices(task, 0), contiguous(task, 1)
    F, Y = np.zeros((n, n), X.dtype), np.empty((n, n), X.dtype)
    for i in single_matrices(task):
        _copy_lower(F, L[i], n)
        if not _is_usual(F, n):
            report(task)
            continue
        for r in range(n):
            for c in range(n):
                Y[r, c] = r == c
        _substitute(F, Y, n)
        _substitute_adjoint(F, Y, n)
        for r in range(n):
            for c in range(r):
                X[i, c, r] = Y[r, c]
                X[i, r, c] = np.conj(Y[r, c])
            X[i, r, r] = Y[r, r]


def inverse_backward(task: Task, n: int) -> None:
    """`by_cholesky.inverse_backward`."""
    L, X = matrices(task, 0), contiguous(task, 1)
    G, result = matrices(task, 2), contiguous(task, 3)
    F, both, P = (
        np.zeros((n, n), X.dtype),
        np.empty((n, n), X.dtype),
        np.empty((n, n), X.dtype),
    )
    for i in single_matrices(task):
        _copy_lower(F, L[i], n)
        for r in range(n):
            for c in range(n):
                both[r, c] = G[i, r, c] + np.conj(G[i, c, r])
        power = brought_near_one(both, n, n)
        if power == 0:
            report(task)
            continue
        for r in range(n):
            for c in range(n):
                total = both[r, 0] * X[i, c, 0]
                for k in range(1, n):
                    total += both[r, k] * X[i, c, k]
                P[r, c] = total
        _substitute(F, P, n)
        for r in range(n):
            for c in range(n):
                result[i, r, c] = -np.conj(P[c, r])
        multiply(result[i], power)


@inlined
def _copy_lower(F: Array, A: Array, n: int) -> None:
    for r in range(n):
        for c in range(r + 1):
            F[r, c] = A[r, c]


@inlined
def _is_usual(F: Array, n: int) -> bool:
    """`by_cholesky._is_usual`."""
    has_no_zero = True
    for r in range(n):
        has_no_zero &= F[r, r] != 0
    return has_no_zero and squares_if_moderate(F, sum_of_squares(F, n, n)) >= 0


@inlined
def _substitute(L: Array, Y: Array, n: int) -> None:
    """Y ← L⁻¹ Y."""
    for j in range(Y.shape[1]):
        for r in range(n):
            for c in range(r):
                Y[r, j] -= L[r, c] * Y[c, j]
            Y[r, j] /= L[r, r]


@inlined
def _substitute_adjoint(L: Array, Y: Array, n: int) -> None:
    """Y ← L⁻ᴴ Y."""
    for j in range(Y.shape[1]):
        for r in range(n - 1, -1, -1):
            for c in range(r + 1, n):
                Y[r, j] -= np.conj(L[c, r]) * Y[c, j]
            Y[r, j] /= np.conj(L[r, r])
