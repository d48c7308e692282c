"""The backward of small matrices, a group of them at a time with the batch innermost.

Gathered into an array (rows, columns, lanes), the scalar recurrences of substitution and elimination
become the same vector instruction for all matrices of a group, however small they are, and a whole
backward reads its inputs once and writes its result once. Each kernel goes over a batch of whatever
strides and length, described by a task; `strategies.lanes.threads` compiles it.

In one file, because the compiler's cache looks for changes in the file of the kernel only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from strategies.lanes.task import (
    claim,
    flags,
    group_size,
    integers,
    matrices,
    number_of_matrices,
    numbers,
    pivots,
)

__all__ = [
    "determinant",
    "inv",
    "inverse_adjoint",
    "inverse_order",
    "last_pivot_is_small",
    "lstsq",
    "lu",
    "pinv",
    "rest_is_roundoff",
    "solve",
]

Array = Any  # NumPy arrays of whatever the kernel is compiled for
Task = Any  # see `strategies.lanes.task`

_compiled: Any = numba.njit  # as part of the kernel that calls it


@_compiled
def _groups(task: Task) -> Iterator[int]:
    """The first matrices of the groups that are this thread's."""
    count, size = number_of_matrices(task), group_size(task)
    start = claim(task) * size
    while start < count:
        yield start
        start = claim(task) * size


@_compiled
def _single_matrices(task: Task) -> Iterator[int]:
    """The matrices of this thread's groups, one by one."""
    for start in _groups(task):
        stop = min(start + group_size(task), number_of_matrices(task))
        for matrix in range(start, stop):  # noqa: UP028 - Numba knows no `yield from`
            yield matrix


@_compiled
def _gather(source: Array, start: int, lanes: int) -> Array:
    """A group of matrices, batch last; the last one repeated where the batch ends."""
    count, rows, columns = source.shape
    group = np.empty((rows, columns, lanes), source.dtype)
    here = min(lanes, count - start)
    present = source[start : start + here]
    for r in range(rows):
        for c in range(columns):
            entries, gathered = present[:, r, c], group[r, c]
            for lane in range(here):
                gathered[lane] = entries[lane]
            for lane in range(here, lanes):
                gathered[lane] = entries[here - 1]
    return group


@_compiled
def _scatter(group: Array, target: Array, start: int) -> None:
    count, rows, columns = target.shape
    lanes = group.shape[2]
    for lane in range(min(lanes, count - start)):
        for r in range(rows):
            for c in range(columns):
                target[start + lane, r, c] = group[r, c, lane]


@_compiled
def _scatter_rows(group: Array, order: Array, target: Array, start: int) -> None:
    """Row i of each result is row `order[i]` of its matrix."""
    count, rows, columns = target.shape
    lanes = group.shape[2]
    for lane in range(min(lanes, count - start)):
        for r in range(rows):
            row, permuted = group[order[start + lane, r], :, lane], target[start + lane, r]
            for c in range(columns):
                permuted[c] = row[c]


@_compiled
def _solve_upper(U: Array, Y: Array) -> None:
    """Y ← U⁻¹ Y."""
    n, columns, lanes = Y.shape
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            for lane in range(lanes):
                Y[i, c, lane] /= U[i, i, lane]
        for r in range(i):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= U[r, i, lane] * Y[i, c, lane]


@_compiled
def _solve_upper_adjoint(U: Array, Y: Array) -> None:
    """Y ← U⁻ᴴ Y."""
    n, columns, lanes = Y.shape
    for i in range(n):
        for c in range(columns):
            for lane in range(lanes):
                Y[i, c, lane] /= np.conj(U[i, i, lane])
        for r in range(i + 1, n):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= np.conj(U[i, r, lane]) * Y[i, c, lane]


@_compiled
def _solve_unit_lower(L: Array, Y: Array) -> None:
    """Y ← L⁻¹ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n):
        for r in range(i + 1, n):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= L[r, i, lane] * Y[i, c, lane]


@_compiled
def _solve_unit_lower_adjoint(L: Array, Y: Array) -> None:
    """Y ← L⁻ᴴ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n - 1, -1, -1):
        for r in range(i):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= np.conj(L[i, r, lane]) * Y[i, c, lane]


@_compiled
def _swap(group: Array, swaps: Array, start: int, adjoint: bool) -> None:
    """Y ← P Y, or Pᵀ Y: the row swaps of LAPACK pivots, from the last one or from the first."""
    count, n = swaps.shape
    _, columns, lanes = group.shape
    for lane in range(lanes):
        of_matrix = swaps[min(start + lane, count - 1)]
        for step in range(n):
            i = step if adjoint else n - 1 - step
            j = of_matrix[i] - 1
            if j != i:
                for c in range(columns):
                    group[i, c, lane], group[j, c, lane] = group[j, c, lane], group[i, c, lane]


@_compiled
def _add_product(out: Array, sign: int, X: Array, Y: Array) -> None:
    """Out ← out + sign · X Y."""
    rows, inner, lanes = X.shape
    columns = Y.shape[1]
    for r in range(rows):
        for i in range(inner):
            for c in range(columns):
                for lane in range(lanes):
                    out[r, c, lane] += sign * X[r, i, lane] * Y[i, c, lane]


@_compiled
def _adjoint(X: Array) -> Array:
    rows, columns, lanes = X.shape
    result = np.empty((columns, rows, lanes), X.dtype)
    for r in range(rows):
        for c in range(columns):
            for lane in range(lanes):
                result[c, r, lane] = np.conj(X[r, c, lane])
    return result


@_compiled
def _zeros(rows: int, columns: int, like: Array) -> Array:
    return np.zeros((rows, columns, like.shape[2]), like.dtype)


@_compiled
def _identity(n: int, like: Array) -> Array:
    group = _zeros(n, n, like)
    for i in range(n):
        for lane in range(like.shape[2]):
            group[i, i, lane] = 1
    return group


def lu(task: Task) -> None:
    """The reverse in `blocked_lu` with blocks of one column."""
    LU, cotangent, result = matrices(task, 0), matrices(task, 2), matrices(task, 3)
    inverse_order = integers(task, 1)
    _, m, n = LU.shape
    lanes = group_size(task)
    for start in _groups(task):
        F, S = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        for j in range(min(m, n) - 1, -1, -1):
            for r in range(j + 1, m):
                for c in range(j + 1, n):
                    for lane in range(lanes):
                        S[r, j, lane] -= S[r, c, lane] * np.conj(F[j, c, lane])
                        S[j, c, lane] -= np.conj(F[r, j, lane]) * S[r, c, lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    S[r, j, lane] /= np.conj(F[j, j, lane])
                    S[j, j, lane] -= np.conj(F[r, j, lane]) * S[r, j, lane]
        _scatter_rows(S, inverse_order, result, start)


def solve(task: Task) -> None:
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    LU, swaps, solution = matrices(task, 0), pivots(task, 1), matrices(task, 2)
    cotangent, rhs_result, result = matrices(task, 3), matrices(task, 4), matrices(task, 5)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in _groups(task):
        F, Y = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        _solve_upper_adjoint(F, Y)
        _solve_unit_lower_adjoint(F, Y)
        _swap(Y, swaps, start, False)
        _scatter(Y, rhs_result, start)
        gradient = _zeros(n, n, F)
        _add_product(gradient, -1, Y, _adjoint(_gather(solution, start, lanes)))
        _scatter(gradient, result, start)


def inv(task: Task) -> None:
    """Ā = −A⁻ᴴ G A⁻ᴴ, from A = P L U."""
    LU, swaps = matrices(task, 0), pivots(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    lanes = group_size(task)
    for start in _groups(task):
        F, Y = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        _solve_upper_adjoint(F, Y)
        _solve_unit_lower_adjoint(F, Y)
        _swap(Y, swaps, start, False)
        Y = _adjoint(Y)
        _swap(Y, swaps, start, True)
        _solve_unit_lower(F, Y)
        _solve_upper(F, Y)
        _scatter(-_adjoint(Y), result, start)


def inverse_adjoint(task: Task) -> None:
    """A number times A⁻ᴴ = P L⁻ᴴ U⁻ᴴ, from PᵀA = L U."""
    LU, inverse_order = matrices(task, 0), integers(task, 1)
    scale, result = matrices(task, 2), matrices(task, 3)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in _groups(task):
        F = _gather(LU, start, lanes)
        Y = _zeros(n, n, F)
        # U⁻ᴴ, row by row: it is lower triangular.
        for i in range(n):
            for lane in range(lanes):
                Y[i, i, lane] = 1
            for r in range(i):
                for c in range(r + 1):
                    for lane in range(lanes):
                        Y[i, c, lane] -= np.conj(F[r, i, lane]) * Y[r, c, lane]
            for c in range(i + 1):
                for lane in range(lanes):
                    Y[i, c, lane] /= np.conj(F[i, i, lane])
        _solve_unit_lower_adjoint(F, Y)
        of_group = _gather(scale, start, lanes)
        for r in range(n):
            for c in range(n):
                for lane in range(lanes):
                    Y[r, c, lane] *= of_group[0, 0, lane]
        _scatter_rows(Y, inverse_order, result, start)


def pinv(task: Task) -> None:
    """The formula of `strategies.formulas.pinv` at full column rank, A = Q R."""
    Q, R = matrices(task, 0), matrices(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    n = R.shape[1]
    lanes = group_size(task)
    for start in _groups(task):
        basis, F = _gather(Q, start, lanes), _gather(R, start, lanes)
        W = _adjoint(_gather(cotangent, start, lanes))
        in_range = _zeros(n, n, F)
        _add_product(in_range, 1, _adjoint(basis), W)
        gram = _identity(n, F)
        _solve_upper_adjoint(F, gram)
        _solve_upper(F, gram)
        K = in_range.copy()
        _solve_upper(F, K)
        along = -_adjoint(K)
        _solve_upper_adjoint(F, along)
        _add_product(along, -1, in_range, gram)
        gradient = _zeros(basis.shape[0], n, F)
        _add_product(gradient, 1, W, gram)
        _add_product(gradient, 1, basis, along)
        _scatter(gradient, result, start)


def lstsq(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` at full column rank, A = Q R."""
    Q, R, matrix, rhs = matrices(task, 0), matrices(task, 1), matrices(task, 2), matrices(task, 3)
    solution, cotangent = matrices(task, 4), matrices(task, 5)
    rhs_result, result = matrices(task, 6), matrices(task, 7)
    m, n = Q.shape[1:]
    k = rhs.shape[2]
    lanes = group_size(task)
    for start in _groups(task):
        F, X = _gather(R, start, lanes), _gather(solution, start, lanes)
        w = _gather(cotangent, start, lanes)
        _solve_upper_adjoint(F, w)
        Z = _zeros(m, k, F)
        _add_product(Z, 1, _gather(Q, start, lanes), w)
        _scatter(Z, rhs_result, start)
        _solve_upper(F, w)
        residual = _gather(rhs, start, lanes)
        _add_product(residual, -1, _gather(matrix, start, lanes), X)
        gradient = _zeros(m, n, F)
        _add_product(gradient, -1, Z, _adjoint(X))
        _add_product(gradient, 1, residual, _adjoint(w))
        _scatter(gradient, result, start)


def inverse_order(task: Task) -> None:
    """The row swaps of LAPACK pivots, applied backwards: the inverse of the order they make."""
    swaps, result = pivots(task, 0), integers(task, 1)
    for matrix in _single_matrices(task):
        for i in range(result.shape[1]):
            result[matrix, i] = i
        for i in range(swaps.shape[1] - 1, -1, -1):
            j = swaps[matrix, i] - 1
            result[matrix, i], result[matrix, j] = result[matrix, j], result[matrix, i]


def last_pivot_is_small(task: Task) -> None:
    """Whether the last pivot is at most √ε of the terms that it is the sum of."""
    LU, result = matrices(task, 0), flags(task, 1)
    _, m, n = LU.shape
    last = min(m, n) - 1
    small = np.sqrt(np.finfo(LU.real.dtype).eps)
    for matrix in _single_matrices(task):
        pivot = abs(LU[matrix, last, last])
        terms = pivot
        for i in range(last):
            terms += abs(LU[matrix, last, i]) * abs(LU[matrix, i, last])
        result[matrix, 0] = pivot <= small * terms


def determinant(task: Task) -> None:
    """Det A, and how many pivots are at most √ε of the largest entry of the factors."""
    LU, swaps = matrices(task, 0), pivots(task, 1)
    result, negligible = numbers(task, 2), integers(task, 3)
    n = LU.shape[1]
    small = np.sqrt(np.finfo(LU.real.dtype).eps)
    for matrix in _single_matrices(task):
        largest = abs(LU[matrix, 0, 0])
        for i in range(n):
            for j in range(n):
                largest = max(largest, abs(LU[matrix, i, j]))
        product = LU[matrix, 0, 0] ** 0
        negligible[matrix, 0] = 0
        for i in range(n):
            pivot = LU[matrix, i, i]
            product *= pivot if swaps[matrix, i] == i + 1 else -pivot
            negligible[matrix, 0] += abs(pivot) <= small * largest
        result[matrix, 0] = product


def rest_is_roundoff(task: Task) -> None:
    """Whether what is left after some steps of elimination is roundoff: `linalg._canonical_lu`."""
    LU, ranks, result = matrices(task, 0), integers(task, 1), flags(task, 2)
    _, m, n = LU.shape
    k = min(m, n)
    precision = np.finfo(LU.real.dtype).eps
    terms = np.empty((m, n))
    for matrix in _single_matrices(task):
        F, rank = LU[matrix] * np.float64(1), ranks[matrix, 0]  # squares of it do not overflow
        rows, columns = np.ones(m), np.ones(n)
        rows[:rank] = 0
        columns[:rank] = 0
        x = np.empty(rank, F.dtype)
        for p in range(rank, m):  # the rows of L₂ L₁⁻¹
            for i in range(rank - 1, -1, -1):
                x[i] = F[p, i]
                for j in range(i + 1, rank):
                    x[i] -= x[j] * F[j, i]
                rows[i] += abs(x[i]) ** 2
        for q in range(rank, n):  # the columns of U₁⁻¹ U₂
            for i in range(rank - 1, -1, -1):
                x[i] = F[i, q]
                for j in range(i + 1, rank):
                    x[i] -= F[i, j] * x[j]
                # Numba's complex division raises an error where the divisor is zero.
                x[i] *= np.conj(F[i, i]) * (1 / abs(F[i, i]) ** 2)
                columns[i] += abs(x[i]) ** 2
        for i in range(m):
            for j in range(n):
                terms[i, j] = abs(F[i, j]) if i <= j else 0.0
                for s in range(min(i, j + 1, k)):
                    terms[i, j] += abs(F[i, s]) * abs(F[s, j])
        scale = terms.max()
        variance = 0.0
        for i in range(m):
            for j in range(n):
                variance += rows[i] * (terms[i, j] / scale) ** 2 * columns[j]
        left = 0.0
        for i in range(rank, m):
            for j in range(rank, n):
                entry = F[i, j] * np.float64(i <= j)
                for s in range(rank, min(i, j + 1, k)):
                    entry += F[i, s] * F[s, j]
                left += (abs(entry) / scale) ** 2
        # Not ≤: after a pivot that is exactly zero, or of a zero matrix, the right side is NaN.
        result[matrix, 0] = not (np.sqrt(left) > precision * np.sqrt(variance))
