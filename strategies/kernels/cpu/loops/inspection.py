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
    reordered,
    single_matrices,
)


def inverse_order(task: Task) -> None:
    """The row swaps of LAPACK pivots, applied backwards: the inverse of the order they make."""
    swaps, result = pivots(task, 0), integers(task, 1)
    for matrix in single_matrices(task):
        _undo(swaps[matrix], result[matrix])


@compiled
def _undo(swaps: Array, order: Array) -> None:
    for i in range(len(order)):
        order[i] = i
    for i in range(len(swaps) - 1, -1, -1):
        j = swaps[i] - 1
        order[i], order[j] = order[j], order[i]


def determinant(task: Task) -> None:
    """Det A, how many pivots are at most √ε of the largest entry of the factors, `inverse_order`."""
    LU, swaps = matrices(task, 0), pivots(task, 1)
    result, negligible, order = numbers(task, 2), integers(task, 3), integers(task, 4)
    n = LU.shape[1]
    small = np.sqrt(np.finfo(LU.real.dtype).eps)
    for matrix in single_matrices(task):
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
        _undo(swaps[matrix], order[matrix])


def pivot_may_be_zero(task: Task) -> None:
    """Whether the last pivot may be roundoff or another one is zero; `inverse_order`."""
    LU, swaps, result, order = matrices(task, 0), pivots(task, 1), flags(task, 2), integers(task, 3)
    _, m, n = LU.shape
    last = min(m, n) - 1
    precision = np.finfo(LU.real.dtype).eps
    for matrix in single_matrices(task):
        is_suspect = _may_be_roundoff(LU[matrix], last, precision)
        for i in range(last):
            is_suspect |= LU[matrix, i, i] == 0
        result[matrix, 0] = is_suspect
        _undo(swaps[matrix], order[matrix])


@compiled
def _is_small(F: Array, row: int, column: int, small: float) -> bool:
    """Whether that entry of U is small beside the terms that it is the sum of."""
    entry = abs(F[row, column])
    terms = entry
    for s in range(row):
        terms += abs(F[row, s]) * abs(F[s, column])
    return entry <= small * terms


def last_may_be_roundoff(task: Task) -> None:
    """Whether the last pivot may be roundoff, by its row, its column and its leading block."""
    LU, result = matrices(task, 0), flags(task, 1)
    last = min(LU.shape[1:]) - 1
    precision = np.finfo(LU.real.dtype).eps
    for matrix in single_matrices(task):
        result[matrix, 0] = _last_may_be_roundoff(LU[matrix], last, precision)


def rest_is_roundoff(task: Task) -> None:
    """Whether what is left after some steps of elimination is roundoff: `factors.canonical_lu`."""
    LU, ranks, result = matrices(task, 0), integers(task, 1), flags(task, 2)
    precision = np.finfo(LU.real.dtype).eps
    for matrix in single_matrices(task):
        result[matrix, 0] = _rest_is_roundoff(LU[matrix], ranks[matrix, 0], precision)


def canonicalize(task: Task) -> None:
    """Overwrite rank-deficient factors and pivots by their canonical form, and tell the rank."""
    LU, swaps, ranks = matrices(task, 0), pivots(task, 1), integers(task, 2)
    _, m, n = LU.shape
    k = min(m, n)
    precision = np.finfo(LU.real.dtype).eps
    for matrix in single_matrices(task):
        F = LU[matrix]
        lowest, highest = 0, k - 1
        while lowest < highest:
            middle = (lowest + highest) // 2
            if _rest_is_roundoff(F, middle, precision):
                highest = middle
            else:
                lowest = middle + 1
        rank = ranks[matrix, 0] = highest
        for i in range(k - 1, rank - 1, -1):
            j = swaps[matrix, i] - 1
            for c in range(rank):
                F[i, c], F[j, c] = F[j, c], F[i, c]
            swaps[matrix, i] = i + 1
        F[rank:, rank:] = 0


@compiled
def _rest_is_roundoff(F: Array, rank: int, precision: float) -> bool:
    last = min(F.shape) - 1
    small = np.sqrt(precision)
    if not _last_may_be_roundoff(F, last, precision):
        return False
    rows = F * np.float64(1)  # contiguous, and squares of it do not overflow
    size = np.abs(rows)
    return _rows_are_small(size, rank, small) and _is_roundoff(rows, size, rank, precision)


@compiled
def _rows_are_small(size: Array, first: int, small: float) -> bool:
    """Whether each row of U from there on is small beside the terms that it is the sum of."""
    m, n = size.shape
    terms = np.empty(n)
    for i in range(min(m, n) - 1, first - 1, -1):
        for j in range(i, n):
            terms[j] = size[i, j]
        for s in range(i):
            for j in range(i, n):
                terms[j] += size[i, s] * size[s, j]
        within = 0
        for j in range(i, n):
            within += size[i, j] <= small * terms[j]
        if within < n - i:
            return False
    return True


@compiled
def _may_be_roundoff(F: Array, last: int, precision: float) -> bool:
    """What `_rest_is_roundoff` at rank `last` is bound to be, without a product of the factors."""
    small = np.sqrt(precision)
    if not _last_may_be_roundoff(F, last, precision):
        return False
    rows = F * np.float64(1)
    size = np.abs(rows)
    if not _rows_are_small(size, last, small):
        return False
    complement, scale = _complement(rows, size, last)
    return scale == 0 or not _is_more(complement, *_amplification(rows, last), precision)


@compiled
def _last_may_be_roundoff(F: Array, last: int, precision: float) -> bool:
    """False of most matrices after reading one row and one column."""
    if not _is_small(F, last, last, np.sqrt(precision)):
        return False
    return not _leading_block_is_regular(F, last, precision)


@compiled
def _leading_block_is_regular(F: Array, last: int, precision: float) -> bool:
    """Whether its last pivot is at least twice what roundoff may be: the matrix then has full rank.

    Cauchy and Schwarz bound an entry of |L||U| by the norms of a row of L and a column of U. Summed up
    as in `factors.canonical_lu`, that is two to four times what roundoff is expected to be.
    """
    block = F[: last + 1, : last + 1] * np.float64(1)
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
    return pivot**2 > (2 * precision) ** 2 * of_L * of_U


@reordered
def _complement(F: Array, size: Array, rank: int) -> tuple[float, float]:
    """Its squared norm, in units of the largest sum of a column of |U|, and one over that sum."""
    m, n = F.shape
    k = min(m, n)
    terms = np.zeros(n)
    for i in range(k):
        for j in range(i, n):
            terms[j] += size[i, j]
    largest = terms.max()
    if not largest > 0:
        return 0.0, 0.0
    scale = 1 / largest
    left = 0.0
    for i in range(rank, m):
        for j in range(rank, n):
            entry = F[i, j] * np.float64(i <= j)
            for s in range(rank, min(i, j + 1, k)):
                entry += F[i, s] * F[s, j]
            left += (abs(entry) * scale) ** 2
    return left, scale


@compiled
def _is_more(complement: float, rows: Array, columns: Array, precision: float) -> bool:
    """Whether it exceeds a bound on its roundoff, whatever the entries of |L||U|.

    Pivoting keeps |L| ≤ √2 (complex pivots are compared by |re| + |im|), and the entries of |L||U| at
    most that times the largest sum of a column of |U|.
    """
    return complement > 2 * precision**2 * rows.sum() * columns.sum()


@reordered
def _is_roundoff(F: Array, size: Array, rank: int, precision: float) -> bool:
    m, n = F.shape
    k = min(m, n)
    left, scale = _complement(F, size, rank)
    if scale == 0:
        return True
    rows, columns = _amplification(F, rank)
    if _is_more(left, rows, columns, precision):  # it often is, and that costs less
        return False
    terms = np.empty(n)
    variance = 0.0
    for i in range(m):
        terms[:] = 0
        for s in range(min(i + 1, k)):
            factor = size[i, s] if s < i else 1.0
            for j in range(s, n):
                terms[j] += factor * size[s, j]
        for j in range(n):
            variance += rows[i] * (terms[j] * scale) ** 2 * columns[j]
    # Not ≤: after a pivot that is exactly zero the right side is NaN.
    return not np.sqrt(left) > precision * np.sqrt(variance)


@compiled
def _amplification(F: Array, rank: int) -> tuple[Array, Array]:
    """Sums over the squares of the columns of [−L₂L₁⁻¹ I] and of the rows of [−U₁⁻¹U₂; I]."""
    m, n = F.shape
    rows, columns = np.ones(m), np.ones(n)
    left, right = F[rank:, :rank].T.copy(), F[:rank, rank:].copy()
    _solve_upper(F[:rank, :rank].T, left, True)
    _solve_upper(F[:rank, :rank], right, False)
    for i in range(rank):
        rows[i] = _sum_of_squares(left[i])
        columns[i] = _sum_of_squares(right[i])
    return rows, columns


@compiled
def _solve_upper(T: Array, Y: Array, is_unit: bool) -> None:
    """Y ← T⁻¹ Y; of one column, as it mostly is, in a loop that spares the views of rows."""
    rank, columns = Y.shape
    for i in range(rank - 1, -1, -1):
        if not is_unit:
            # Numba's complex division raises an error where the divisor is zero.
            inverse = np.conj(T[i, i]) * (1 / abs(T[i, i]) ** 2)
            for q in range(columns):
                Y[i, q] *= inverse
        if columns == 1:
            x = Y[i, 0]
            for j in range(i):
                Y[j, 0] -= T[j, i] * x
        else:
            for j in range(i):
                factor = T[j, i]
                for q in range(columns):
                    Y[j, q] -= factor * Y[i, q]


@reordered
def _sum_of_squares(x: Array) -> float:
    total = 0.0
    for entry in x:
        total += entry.real**2 + entry.imag**2
    return total
