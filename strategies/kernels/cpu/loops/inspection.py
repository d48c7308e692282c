"""Rank and determinant tests on LU factors, one matrix after the other."""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    flags,
    integers,
    matrices,
    numbers,
    pivots,
    single_matrices,
)
from strategies.kernels.cpu.loops.condition import growth_limit


def inverse_order(task: Task) -> None:
    """The row swaps of LAPACK pivots, applied backwards: the inverse of the order they make."""
    swaps, result = pivots(task, 0), integers(task, 1)
    for matrix in single_matrices(task):
        inverse_of_swaps(swaps[matrix], result[matrix])


@compiled
def inverse_of_swaps(swaps: Array, order: Array) -> None:
    """Write where the swaps move each row."""
    for i in range(len(order)):
        order[i] = i
    for i in range(len(swaps) - 1, -1, -1):
        j = swaps[i] - 1
        order[i], order[j] = order[j], order[i]


def determinant(task: Task) -> None:
    """Mantissas of det A; exponents, negligible pivots, how hard A is; `inverse_order`."""
    A, LU, swaps = matrices(task, 0), matrices(task, 1), pivots(task, 2)
    result, notes, order = numbers(task, 3), integers(task, 4), integers(task, 5)
    scratch = np.empty((3, LU.shape[1]), LU.real.dtype)
    for matrix in single_matrices(task):
        inverse_of_swaps(swaps[matrix], order[matrix])
        result[matrix, 0], notes[matrix, 0] = determinant_of(LU[matrix], swaps[matrix])
        notes[matrix, 1] = notes[matrix, 2] = 0
        if not is_easy(A[matrix], LU[matrix], scratch[0]):
            difficulty = _difficulty(A[matrix], LU[matrix], order[matrix], scratch)
            notes[matrix, 1], notes[matrix, 2] = difficulty


@compiled
def _far(F: Array) -> tuple[float, int]:
    """A power of two whose square is in range, with its exponent."""
    if np.finfo(F.real.dtype).eps < 1e-10:
        return 2.0**500, 500
    return 2.0**52, 52


@compiled
def determinant_of(F: Array, swaps: Array) -> tuple[complex, int]:
    """Of packed factors, with the exponent of a power of two that is left out of it."""
    far, step = _far(F)
    down, up = F.real.dtype.type(1 / far), F.real.dtype.type(far)
    product, exponent = F[0, 0] ** 0, 0
    for i in range(len(F)):
        pivot = F[i, i]
        product *= pivot if swaps[i] == i + 1 else -pivot
        size = _modulus(product)
        if size > far:
            product *= down
            exponent += step
        elif 0 < size < 1 / far:
            product *= up
            exponent -= step
    return product, exponent


@compiled
def is_hard(A: Array, F: Array, order: Array, scratch: Array) -> bool:
    """Whether there is more to do than to divide by the pivots, or some pivot is negligible.

    The last is three rows of real numbers.
    """
    if is_easy(A, F, scratch[0]):
        return False
    negligible, difficulty = _difficulty(A, F, order, scratch)
    return negligible > 0 or difficulty > 0


@compiled
def is_easy(A: Array, F: Array, columns: Array) -> bool:
    """True of most matrices that have no negligible pivot and are not hard, at less expense.

    Notes the largest entry of each column of A.
    """
    n = len(F)
    small = np.sqrt(np.finfo(F.real.dtype).eps)
    far = _far(F)[0]
    is_finite = True
    terms = small * 0
    columns[:] = 0
    for i in range(n):
        for j in range(n):
            size = _modulus(A[i, j])
            is_finite &= size < np.inf
            columns[j] = max(columns[j], size)
    for j in range(n):
        terms = max(terms, _largest_of_first(F[:, j], j + 1) / columns[j])
    terms *= 2  # |L| is at most √2: complex pivots are compared by |re| + |im|
    for i in range(n):
        pivot = _modulus(F[i, i])
        if not (pivot > small * terms * columns[i] and 1 / far <= pivot <= far):
            return False
        if columns[i] > far or _has_grown(A[i], columns, terms):
            return False
    return is_finite


@compiled
def _largest_of_first(column: Array, count: int) -> float:
    """Of so many entries, four at a time: one maximum waits for the one before."""
    first = second = third = fourth = _modulus(column[0])
    whole = count // 4 * 4
    for i in range(0, whole, 4):
        first = max(first, _modulus(column[i]))
        second = max(second, _modulus(column[i + 1]))
        third = max(third, _modulus(column[i + 2]))
        fourth = max(fourth, _modulus(column[i + 3]))
    for i in range(whole, count):
        first = max(first, _modulus(column[i]))
    return max(first, second, third, fourth)


@compiled
def _difficulty(A: Array, F: Array, order: Array, scratch: Array) -> tuple[int, int]:
    """The number of negligible pivots, and how hard the matrix is: `factors.determinant`.

    The first row of the scratch holds the largest entries of the columns.
    """
    if not _is_finite(A):
        return 0, 3
    n = len(F)
    columns, rows, terms = scratch[0], scratch[1], scratch[2]
    rows[:] = 0
    for j in range(n):
        scale = 1 / columns[j] if columns[j] > 0 else columns[j]
        for i in range(j + 1):
            rows[i] = max(rows[i], _modulus(F[i, j]) * scale)
    for i in range(n):
        terms[i] = rows[i]
    for j in range(n):
        for i in range(j + 1, n):
            terms[i] = max(terms[i], _modulus(F[i, j]) * rows[j])
    small = np.sqrt(np.finfo(F.real.dtype).eps)
    far = _far(F)[0]
    negligible, is_useless = 0, columns.max() > far
    for i in range(n):
        pivot = _modulus(F[i, i])
        negligible += pivot <= small * terms[i] * columns[i]
        is_useless |= pivot < 1 / far or pivot > far
        is_useless |= _has_grown(A[i], columns, terms[order[i]])
    return negligible, 2 if is_useless else int(negligible > 1)


@compiled
def _is_finite(A: Array) -> bool:
    for i in range(len(A)):
        for j in range(len(A)):
            if not _modulus(A[i, j]) < np.inf:
                return False
    return True


@compiled
def _modulus(x: complex) -> float:
    """Without a square root, and thus up to √2 times as much."""
    return abs(x.real) + abs(x.imag)


@compiled
def _has_grown(row: Array, columns: Array, terms: float) -> bool:
    limit = growth_limit(len(row))
    for j in range(len(row)):  # noqa: SIM110 - Numba knows no `all`
        if terms * columns[j] <= limit * _modulus(row[j]):
            return False
    return True


def may_be_deficient(task: Task) -> None:
    """Whether some pivot may be roundoff or is not finite; `inverse_order`."""
    LU, swaps, result, order = matrices(task, 0), pivots(task, 1), flags(task, 2), integers(task, 3)
    for matrix in single_matrices(task):
        result[matrix, 0] = some_pivot_may_be_roundoff(LU[matrix])
        inverse_of_swaps(swaps[matrix], order[matrix])


@compiled
def some_pivot_may_be_roundoff(F: Array) -> bool:
    """Of packed factors; or is not finite."""
    k = min(F.shape)
    precision = np.finfo(F.real.dtype).eps
    small = min(precision**0.25, 4 * k**-1.5)
    for i in range(k):  # noqa: SIM110 - Numba knows no `any`
        if _may_be_roundoff(F, i, small, precision):
            return True
    return False


def last_may_be_roundoff(task: Task) -> None:
    """Whether the last pivot may be roundoff."""
    LU, result = matrices(task, 0), flags(task, 1)
    last = min(LU.shape[1:]) - 1
    precision = np.finfo(LU.real.dtype).eps
    small = min(precision**0.25, 4 * (last + 1) ** -1.5)
    for matrix in single_matrices(task):
        result[matrix, 0] = _may_be_roundoff(LU[matrix], last, small, precision)


@compiled
def _may_be_roundoff(F: Array, i: int, small: float, precision: float) -> bool:
    """False of most pivots after reading one row and one column: see `factors.lu_rank`."""
    pivot = abs(F[i, i])
    terms = pivot
    for s in range(i):
        terms += abs(F[i, s]) * abs(F[s, i])
    if pivot > small * terms:  # false of NaN
        return False
    return not _block_is_regular(F[: i + 1, : i + 1], precision)


@compiled
def _block_is_regular(F: Array, precision: float) -> bool:
    """Whether the last pivot of a square block is at least three times what roundoff is expected to be.

    Cauchy and Schwarz bound an entry of |L||U| by the norms of a row of L and a column of U. Summed up
    as in `factors.lu_rank`, that is two to four times what roundoff is expected to be.
    """
    last = len(F) - 1
    block = F * np.float64(1)  # contiguous, and squares of it do not overflow
    largest = abs(block[last, last])
    for i in range(last):
        for j in range(i, last + 1):
            largest = max(largest, abs(block[i, j]))
    if not largest > 0:
        return False
    rows, columns = _amplification(block, last)
    of_L, of_U = 0.0, 0.0
    for i in range(last + 1):
        for j in range(i):
            of_L += rows[i] * abs(block[i, j]) ** 2
        of_L += rows[i]
        for j in range(i, last + 1):
            of_U += columns[j] * (abs(block[i, j]) / largest) ** 2
    pivot = abs(block[last, last]) / largest
    return pivot**2 > (3 * precision) ** 2 * of_L * of_U


@compiled
def _amplification(block: Array, last: int) -> tuple[Array, Array]:
    """The squares of the row [−l₂L₁⁻¹ 1] and of the column [−U₁⁻¹u₂; 1]."""
    rows, columns = np.ones(last + 1), np.ones(last + 1)
    y, x = block[last, :last].copy(), block[:last, last].copy()
    for i in range(last - 1, -1, -1):
        # Numba's complex division raises an error where the divisor is zero.
        x[i] *= np.conj(block[i, i]) * (1 / abs(block[i, i]) ** 2)
        for j in range(i):
            y[j] -= block[i, j] * y[i]
            x[j] -= block[j, i] * x[i]
        rows[i], columns[i] = abs(y[i]) ** 2, abs(x[i]) ** 2
    return rows, columns
