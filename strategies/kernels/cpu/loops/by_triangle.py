"""Small systems with a triangular matrix, and their backward, by substitution.

Of A X = B: B̄ = A⁻ᴴG, and Ā is the triangle of −B̄ Xᴴ, without the diagonal where that is one and not read.
Each loop is compiled four times, for either triangle with and without its diagonal.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    inlined,
    matrices,
    reordered,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import copy_to


def solve_lower(task: Task) -> None:
    """X = L⁻¹B."""
    _solve(task, False, False)


def solve_upper(task: Task) -> None:
    """X = U⁻¹B."""
    _solve(task, True, False)


def solve_unit_lower(task: Task) -> None:
    """X = L⁻¹B, the diagonal of L being one."""
    _solve(task, False, True)


def solve_unit_upper(task: Task) -> None:
    """X = U⁻¹B, the diagonal of U being one."""
    _solve(task, True, True)


def solve_lower_backward(task: Task) -> None:
    """L̄ and B̄."""
    _solve_backward(task, False, False)


def solve_upper_backward(task: Task) -> None:
    """Ū and B̄."""
    _solve_backward(task, True, False)


def solve_unit_lower_backward(task: Task) -> None:
    """L̄ and B̄, the diagonal of L being one."""
    _solve_backward(task, False, True)


def solve_unit_upper_backward(task: Task) -> None:
    """Ū and B̄, the diagonal of U being one."""
    _solve_backward(task, True, True)


@inlined
def _solve(task: Task, is_upper: bool, is_unit: bool) -> None:
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    for i in single_matrices(task):
        copy_to(X[i], B[i])
        _substitute(A[i], X[i], is_upper, is_unit)


@inlined
def _solve_backward(task: Task, is_upper: bool, is_unit: bool) -> None:
    A, X, G = matrices(task, 0), contiguous(task, 1), matrices(task, 2)
    result, rhs_result = contiguous(task, 3), contiguous(task, 4)
    for i in single_matrices(task):
        copy_to(rhs_result[i], G[i])
        _substitute_adjoint(A[i], rhs_result[i], is_upper, is_unit)
        _write_triangle(result[i], rhs_result[i], X[i], is_upper, is_unit)


@reordered
def _substitute(A: Array, X: Array, is_upper: bool, is_unit: bool) -> None:
    n, k = X.shape
    x = X[:, 0].copy()
    for step in range(n):
        i = n - 1 - step if is_upper else step
        first, stop = (i + 1, n) if is_upper else (0, i)
        if k == 1:
            total = X.dtype.type(0)
            for j in range(first, stop):
                total += A[i, j] * x[j]
            x[i] -= total
            X[i, 0] = x[i] = x[i] if is_unit else x[i] / A[i, i]
            continue
        for j in range(first, stop):
            for c in range(k):
                X[i, c] -= A[i, j] * X[j, c]
        if not is_unit:
            for c in range(k):
                X[i, c] /= A[i, i]


@compiled
def _substitute_adjoint(A: Array, Y: Array, is_upper: bool, is_unit: bool) -> None:
    n, k = Y.shape
    for step in range(n):
        i = step if is_upper else n - 1 - step
        if not is_unit:
            for c in range(k):
                Y[i, c] /= np.conj(A[i, i])
        for j in range(i + 1, n) if is_upper else range(i):
            for c in range(k):
                Y[j, c] -= np.conj(A[i, j]) * Y[i, c]


@compiled
def _write_triangle(result: Array, Y: Array, X: Array, is_upper: bool, is_unit: bool) -> None:
    n, k = Y.shape
    for i in range(n):
        for j in range(n):
            result[i, j] = 0
        first, stop = (i + is_unit, n) if is_upper else (0, i + 1 - is_unit)
        for c in range(k):
            y = -Y[i, c]
            for j in range(first, stop):
                result[i, j] += y * np.conj(X[j, c])
