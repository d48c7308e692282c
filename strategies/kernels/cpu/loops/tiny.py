"""Inverses and solutions with matrices of few rows, whose number the compiler knows.

It unrolls the loops then and keeps entries in registers, and a matrix of four rows takes a fifth of the
time that it takes the functions of `small`, which compute the same. Each loop is compiled for each number
of rows by itself (`compilation.entry`), with the functions that it calls.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    contiguous,
    inlined,
    matrices,
    pivots,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import multiply, normalize, squares_if_moderate
from strategies.kernels.cpu.loops.condition import NEVER_GROWS, growth_limit
from strategies.kernels.cpu.loops.small import modulus


def inv(task: Task, n: int) -> None:
    """`fused_forward.inv`."""
    A, X = matrices(task, 0), contiguous(task, 1)
    F, Y, swaps = np.empty((n, n), X.dtype), np.empty((n, n), X.dtype), np.empty(n, np.int32)
    before = np.empty(n)
    for i in single_matrices(task):
        copy_to(F, A[i], n, n)
        if not _factor(F, swaps, before, n):
            report(task)
            continue
        write_inverse(F, swaps, Y, n)
        copy_to(X[i].T, Y, n, n)


def inv_backward(task: Task, n: int) -> None:
    """`fused_backward.inv`."""
    X, G, result = contiguous(task, 0), matrices(task, 1), contiguous(task, 2)
    W, half = np.empty((n, n), X.dtype), np.empty((n, n), X.dtype)
    for i in single_matrices(task):
        copy_to(W, G[i], n, n)
        power = brought_near_one(W, n, n)
        if power == 0:
            report(task)
            continue
        for r in range(n):
            for c in range(n):
                total = np.conj(X[i, r, 0]) * W[0, c]
                for k in range(1, n):
                    total += np.conj(X[i, r, k]) * W[k, c]
                half[r, c] = total
        for r in range(n):
            for c in range(n):
                total = half[r, 0] * np.conj(X[i, 0, c])
                for k in range(1, n):
                    total += half[r, k] * np.conj(X[i, k, c])
                result[i, r, c] = -total
        multiply(result[i], power)


def solve(task: Task, n: int) -> None:
    """`fused_forward.solve`."""
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    LU, swaps = contiguous(task, 3), pivots(task, 4)
    k = X.shape[2]
    F, Y, before = np.empty((n, n), X.dtype), np.empty((n, k), X.dtype), np.empty(n)
    for i in single_matrices(task):
        copy_to(F, A[i], n, n)
        copy_to(Y, B[i], n, k)
        is_moderate = squares_if_moderate(Y, sum_of_squares(Y, n, k)) >= 0
        if not (is_moderate and _factor(F, swaps[i], before, n)):
            report(task)
            continue
        copy_to(LU[i].T, F, n, n)
        substitute(F, swaps[i], Y, n)
        copy_to(X[i], Y, n, k)


def solve_backward(task: Task, n: int) -> None:
    """`fused_backward.solve`."""
    X, LU, swaps = contiguous(task, 0), contiguous(task, 1), pivots(task, 2)
    G, result, rhs_result = matrices(task, 3), contiguous(task, 4), contiguous(task, 5)
    k = X.shape[2]
    F, Y = np.empty((n, n), X.dtype), np.empty((n, k), X.dtype)
    for i in single_matrices(task):
        copy_to(F, LU[i].T, n, n)
        copy_to(Y, G[i], n, k)
        power = brought_near_one(Y, n, k)
        if power == 0:
            report(task)
            continue
        substitute_adjoint(F, swaps[i], Y, n)
        copy_to(rhs_result[i], Y, n, k)
        for r in range(n):
            for c in range(n):
                total = Y[r, 0] * np.conj(X[i, c, 0])
                for j in range(1, k):
                    total += Y[r, j] * np.conj(X[i, c, j])
                result[i, r, c] = -total
        multiply(rhs_result[i], power)
        multiply(result[i], power)


@inlined
def copy_to(target: Array, source: Array, m: int, n: int) -> None:
    """Entry by entry."""
    for i in range(m):
        for j in range(n):
            target[i, j] = source[i, j]


@inlined
def sum_of_squares(F: Array, m: int, n: int) -> float:
    """Of all entries."""
    total = 0.0
    for i in range(m):
        for j in range(n):
            total += F[i, j].real * F[i, j].real + F[i, j].imag * F[i, j].imag
    return total


@inlined
def brought_near_one(F: Array, m: int, n: int) -> float:
    """`columns.normalize`."""
    power = 1.0
    if squares_if_moderate(F, sum_of_squares(F, m, n)) < 0:
        power = normalize(F)
    return power


@inlined
def _factor(F: Array, swaps: Array, before: Array, n: int) -> bool:
    """`columns.factor`, and whether the matrix is a usual case."""
    squares = 0.0
    for j in range(n):
        before[j] = sum_of_squares(F[:, j : j + 1], n, 1)
        squares += before[j]
    is_usual = squares_if_moderate(F, squares) >= 0 and eliminate(F, swaps, n)
    limit = growth_limit(n) ** 2
    for j in range(NEVER_GROWS, n):
        is_usual &= sum_of_squares(F[:, j : j + 1], j + 1, 1) <= limit * before[j]
    return is_usual


@inlined
def eliminate(F: Array, swaps: Array, n: int) -> bool:
    """A = P L U in place, as LAPACK has it; False where a pivot is zero, and nothing is to be read then."""
    is_regular = True
    for k in range(n):
        pivot, largest = k, modulus(F[k, k])
        for i in range(k + 1, n):
            size = modulus(F[i, k])
            if size > largest:
                pivot, largest = i, size
        swaps[k] = pivot + 1
        if not largest > 0:
            is_regular = False
            continue
        if pivot != k:
            for j in range(n):
                F[k, j], F[pivot, j] = F[pivot, j], F[k, j]
        for i in range(k + 1, n):
            F[i, k] /= F[k, k]
        for j in range(k + 1, n):
            for i in range(k + 1, n):
                F[i, j] -= F[i, k] * F[k, j]
    return is_regular


@inlined
def write_inverse(LU: Array, swaps: Array, X: Array, n: int) -> None:
    """X = U⁻¹ L⁻¹ Pᵀ."""
    for j in range(n):
        for i in range(n):
            X[i, j] = i == j
    for j in range(n):
        for k in range(j, n):
            for i in range(k + 1, n):
                X[i, j] -= LU[i, k] * X[k, j]
    for k in range(n - 1, -1, -1):
        reciprocal = 1 / LU[k, k]
        for j in range(n):
            X[k, j] *= reciprocal
            for i in range(k):
                X[i, j] -= LU[i, k] * X[k, j]
    for i in range(n - 1, -1, -1):
        other = swaps[i] - 1
        if other != i:
            for r in range(n):
                X[r, i], X[r, other] = X[r, other], X[r, i]


@inlined
def substitute(LU: Array, swaps: Array, X: Array, n: int) -> None:
    """X ← U⁻¹ L⁻¹ Pᵀ X."""
    for k in range(n):
        other = swaps[k] - 1
        if other != k:
            for j in range(X.shape[1]):
                X[k, j], X[other, j] = X[other, j], X[k, j]
    for j in range(X.shape[1]):
        for k in range(n):
            for i in range(k + 1, n):
                X[i, j] -= LU[i, k] * X[k, j]
        for k in range(n - 1, -1, -1):
            X[k, j] /= LU[k, k]
            for i in range(k):
                X[i, j] -= LU[i, k] * X[k, j]


@inlined
def substitute_adjoint(LU: Array, swaps: Array, X: Array, n: int) -> None:
    """X ← P L⁻ᴴ U⁻ᴴ X."""
    for j in range(X.shape[1]):
        for k in range(n):
            for i in range(k):
                X[k, j] -= np.conj(LU[i, k]) * X[i, j]
            X[k, j] /= np.conj(LU[k, k])
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                X[k, j] -= np.conj(LU[i, k]) * X[i, j]
    for k in range(n - 1, -1, -1):
        other = swaps[k] - 1
        if other != k:
            for j in range(X.shape[1]):
                X[k, j], X[other, j] = X[other, j], X[k, j]
