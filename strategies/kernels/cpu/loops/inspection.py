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
    packed,
    pivots,
    reordered,
    single_matrices,
)
from strategies.kernels.cpu.loops.condition import growth_limit
from strategies.kernels.cpu.loops.roundoff import (
    clear_pivots,
    last_pivot_may_be_roundoff,
    several_pivots_may_be_roundoff,
    some_pivot_may_be_roundoff,
)
from strategies.kernels.cpu.loops.small import modulus


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
        if not write_largest_of_columns(A[matrix], scratch[0]):
            notes[matrix, 2] = 3
        elif _negligible_of_moderate(A[matrix], LU[matrix], scratch[0]) != 0:
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
        size = modulus(product)
        if size > far:
            product *= down
            exponent += step
        elif 0 < size < 1 / far:
            product *= up
            exponent -= step
    return product, exponent


@compiled
def is_hard(A: Array, F: Array, order: Array, scratch: Array) -> bool:
    """Whether there is more to do than to divide by the pivots of a matrix whose entries are finite.

    The last is three rows of real numbers, the first of which holds the largest entry of each column of A.
    """
    negligible = _negligible_of_moderate(A, F, scratch[0])
    if negligible >= 0 and (negligible < 2 or clear_pivots(F, 1.0) > len(F) - 2):
        return False
    return _difficulty(A, F, order, scratch)[1] > 0


@compiled
def write_largest_of_columns(A: Array, result: Array) -> bool:
    """The largest entry of each column; whether all entries are finite."""
    is_finite, is_packed = True, A.strides[1] == A.itemsize
    result[:] = 0
    for row in A:
        if is_packed:
            _raise_to(packed(row), result)
            is_finite &= _is_finite(packed(row))
        else:
            _raise_to(row, result)
            is_finite &= _is_finite(row)
    return is_finite


@compiled
def _raise_to(row: Array, largest: Array) -> None:
    for j in range(len(row)):
        largest[j] = max(largest[j], modulus(row[j]))


@reordered
def _is_finite(row: Array) -> bool:
    total = row.real.dtype.type(0)
    for i in range(len(row)):
        total += row[i].real * 0 + row[i].imag * 0
    return bool(total == 0)


@compiled
def _negligible_of_moderate(A: Array, F: Array, columns: Array) -> int:
    """A bound of the number of negligible pivots, or −1 if factors may be useless: to be cheap."""
    n = len(F)
    small = np.sqrt(np.finfo(F.real.dtype).eps)
    far = _far(F)[0]
    terms = small * 0
    for j in range(n):
        terms = max(terms, _largest_of_first(F.T[j], j + 1) / columns[j])
    terms *= 2  # |L| is at most √2: complex pivots are compared by |re| + |im|
    negligible = 0
    for i in range(n):
        pivot = modulus(F[i, i])
        negligible += pivot <= small * terms * columns[i]
        if not (1 / far <= pivot <= far and terms < far) or columns[i] > far:
            return -1
        if _has_grown(A[i], columns, terms):
            return -1
    return negligible


@compiled
def _largest_of_first(column: Array, count: int) -> float:
    """Of so many entries, four at a time: one maximum waits for the one before."""
    first = second = third = fourth = modulus(column[0])
    whole = count // 4 * 4
    for i in range(0, whole, 4):
        first = max(first, modulus(column[i]))
        second = max(second, modulus(column[i + 1]))
        third = max(third, modulus(column[i + 2]))
        fourth = max(fourth, modulus(column[i + 3]))
    for i in range(whole, count):
        first = max(first, modulus(column[i]))
    return max(first, second, third, fourth)


@compiled
def _difficulty(A: Array, F: Array, order: Array, scratch: Array) -> tuple[int, int]:
    """The number of negligible pivots, and how hard the matrix is: `factors.determinant`; as `is_hard`."""
    n = len(F)
    columns, rows, terms = scratch[0], scratch[1], scratch[2]
    rows[:] = 0
    for j in range(n):
        scale = 1 / columns[j] if columns[j] > 0 else columns[j]
        for i in range(j + 1):
            rows[i] = max(rows[i], modulus(F[i, j]) * scale)
    for i in range(n):
        terms[i] = rows[i]
    for j in range(n):
        for i in range(j + 1, n):
            terms[i] = max(terms[i], modulus(F[i, j]) * rows[j])
    small = np.sqrt(np.finfo(F.real.dtype).eps)
    far = _far(F)[0]
    negligible, is_useless = 0, columns.max() > far
    for i in range(n):
        pivot = modulus(F[i, i])
        negligible += pivot <= small * terms[i] * columns[i]
        is_useless |= pivot < 1 / far or pivot > far
        is_useless |= _has_grown(A[i], columns, terms[order[i]])
    if is_useless:
        return negligible, 2
    return negligible, int(negligible > 1 and several_pivots_may_be_roundoff(F))


@compiled
def _has_grown(row: Array, columns: Array, terms: float) -> bool:
    limit = growth_limit(len(row))
    for j in range(len(row)):  # noqa: SIM110 - Numba knows no `all`
        if terms * columns[j] <= limit * modulus(row[j]):
            return False
    return True


def may_be_deficient(task: Task) -> None:
    """Whether some pivot may be roundoff or is not finite; `inverse_order`."""
    LU, swaps, result, order = matrices(task, 0), pivots(task, 1), flags(task, 2), integers(task, 3)
    for matrix in single_matrices(task):
        result[matrix, 0] = some_pivot_may_be_roundoff(LU[matrix])
        inverse_of_swaps(swaps[matrix], order[matrix])


def last_may_be_roundoff(task: Task) -> None:
    """Whether the last pivot may be roundoff."""
    LU, result = matrices(task, 0), flags(task, 1)
    k = min(LU.shape[1:])
    for matrix in single_matrices(task):
        result[matrix, 0] = last_pivot_may_be_roundoff(LU[matrix, :k, :k])
