"""The smallest singular value and element growth from triangular factors, one matrix after the other.

The smallest singular value of A = L U or R is estimated by a step or two of inverse iteration: with
y = A⁻ᴴx and z = A⁻¹y, ‖z‖ / ‖y‖ is at most ‖A⁻¹‖ for any x, and falls short of it only by as much as x
is orthogonal to the last singular vector, times the ratio of the next singular values. Factors are
given transposed and contiguous: their columns are rows here, and the loops go along them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    flags,
    reals,
    reordered,
    single_matrices,
)

NEVER_GROWS = 4
"""Columns of U up to here stay within `growth_limit`: they double, or grow 1 + √2 fold."""

CLEARLY_REGULAR = 1e-4
"""Beside the largest pivot, an estimate and a pivot with which one step of inverse iteration is enough."""


@compiled
def first_vector(n: int) -> Array:
    """Entries of modulus from one to two, and of no regular signs."""
    vector = np.empty(n)
    for i in range(n):
        wave = np.cos(1.0 + i * i)
        vector[i] = wave + np.copysign(1.0, wave)
    return vector


@compiled
def growth_limit(n: int) -> float:
    """By how much a column of U may be longer than that of A.

    The backward error of A = L U is the growth times u (Higham, "Accuracy and Stability of Numerical
    Algorithms", 2nd ed. 2002, theorem 9.3). Random orthogonal matrices reach √(2n); a growth of 700
    was seen to cost two digits, one of 50 to cost one.
    """
    return 32.0 + n / 8


def smallest_of_triangle(task: Task) -> None:
    """An estimate of σ_n of upper triangular R; zero if a diagonal entry is."""
    _smallest_of_each(task, False)


def smallest_of_product(task: Task) -> None:
    """An estimate of σ_n of L U, packed; zero if a diagonal entry of U is."""
    _smallest_of_each(task, True)


def has_grown(task: Task) -> None:
    """Whether a column of U is longer than its limit allows beside that of A."""
    A, columns, result = contiguous(task, 0), contiguous(task, 1), flags(task, 2)
    n = A.shape[2]
    limit, before = growth_limit(n) ** 2, np.empty(n)
    for matrix in single_matrices(task):
        M, F = A[matrix], columns[matrix]
        before[:] = 0
        for i in range(n):
            for j in range(n):
                before[j] += M[i, j].real ** 2 + M[i, j].imag ** 2
        found = False
        for j in range(n):
            found |= sum_of_squares(F[j, : j + 1]) > limit * before[j]
        result[matrix, 0] = found


@reordered
def sum_of_squares(row: Array) -> float:
    """Of contiguous numbers, in double precision."""
    total = 0.0
    for i in range(len(row)):  # by index, and no power: otherwise the compiler finds no vectors
        real, imag = np.float64(row[i].real), np.float64(row[i].imag)
        total += real * real + imag * imag
    return total


@compiled
def smallest_singular_value(F: Array, is_packed: bool) -> float:
    """An estimate of σ_n from the columns of R, or of packed L U; zero if a diagonal entry is."""
    n = len(F)
    return smallest_from(F, first_vector(n), np.empty(n, F.dtype), is_packed)


@compiled
def _smallest_of_each(task: Task, is_packed: bool) -> None:
    columns, result = contiguous(task, 0), reals(task, 1)
    n = columns.shape[1]
    vector, y = first_vector(n), np.empty(n, columns.dtype)
    for matrix in single_matrices(task):
        result[matrix, 0] = smallest_from(columns[matrix], vector, y, is_packed)


@compiled
def smallest_from(F: Array, vector: Array, y: Array, is_packed: bool) -> float:
    """`smallest_singular_value` from `first_vector`, with as long a scratch vector."""
    n, largest, least, estimate = len(F), 0.0, np.inf, 0.0
    for i in range(n):
        if F[i, i] == 0:
            return 0.0
        pivot = float(abs(F[i, i]))
        largest, least = max(largest, pivot), min(least, pivot)
        y[i] = vector[i]
    for _ in range(2):
        for i in range(n):
            y[i] = (y[i] - _dot(F, y, i, 0, i)) / np.conj(F[i, i])
        if is_packed:
            for i in range(n - 1, -1, -1):
                y[i] -= _dot(F, y, i, i + 1, n)
        if not _normalize(y) > 0:
            return 0.0
        if is_packed:
            for i in range(n):
                _subtract(F, y, i, i + 1, n)
        for i in range(n - 1, -1, -1):
            y[i] /= F[i, i]
            _subtract(F, y, i, 0, i)
        length = _normalize(y)
        if not length > 0:
            return 0.0
        estimate = 1 / length
        # The vector may have been orthogonal to the last singular vector; what came of it is not.
        if min(estimate, least) > CLEARLY_REGULAR * largest:
            break
    return estimate


@reordered
def _dot(F: Array, y: Array, column: int, first: int, last: int) -> Any:
    total = F.dtype.type(0)
    for r in range(first, last):
        total += np.conj(F[column, r]) * y[r]
    return total


@reordered
def _subtract(F: Array, y: Array, column: int, first: int, last: int) -> None:
    """The column times the entry of y that belongs to it, from y."""
    factor = y[column]
    for r in range(first, last):
        y[r] -= F[column, r] * factor


@compiled
def _normalize(y: Array) -> float:
    """Divide a vector by its norm; returns that, or zero if it is none to divide by."""
    largest, total = 0.0, 0.0
    for entry in y:
        largest = max(largest, abs(np.float64(entry.real)) + abs(np.float64(entry.imag)))
    if not np.finfo(np.float64).tiny < largest < np.inf:
        return 0.0
    for i in range(len(y)):
        y[i] *= 1 / largest
        total += np.float64(y[i].real) ** 2 + np.float64(y[i].imag) ** 2
    if not total > 0:
        return 0.0  # of NaN
    for i in range(len(y)):
        y[i] *= 1 / np.sqrt(total)
    return float(largest * np.sqrt(total))
