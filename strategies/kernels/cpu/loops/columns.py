"""One matrix as LAPACK wants it, column after column, and what there is to know of it beforehand.

A loop over such matrices asks for the usual case: norms near one, pivots that are not zero, no growth.
Everything else it reports, and leaves to the operations of torch. Gradients are linear in the cotangents,
which are brought near one by powers of two.
"""

from __future__ import annotations

import math

import numpy as np

from strategies.allocation import LARGE
from strategies.kernels.cpu.blas import (
    eliminate,
    solve_lower,
    solve_lower_adjoint,
    solve_unit_lower,
    solve_upper,
    solve_upper_transposed,
    solve_with,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    ask_for_large_pages,
    compiled,
    inlined,
    packed,
)
from strategies.kernels.cpu.loops.condition import NEVER_GROWS, growth_limit, sum_of_squares
from strategies.kernels.cpu.loops.small import (
    MOST,
    MOST_OF_SUBSTITUTION,
    eliminate_small,
    multiply_inverse_small,
    solve_lower_adjoint_small,
    solve_lower_small,
    solve_small,
)

_BLOCK = 48
"""Columns of L⁻¹ that are computed together; above them it is zero."""

_TILE = 8
"""Rows and columns that are transposed together."""

_LONG = 1024
"""Bytes of a row from which on that is faster: with fewer all lines of a strip stay in the cache."""


@compiled
def by_columns(A: Array) -> Array:
    """A copy, column after column."""
    copy = empty(*A.shape, A)
    copy_to(copy, A)
    return copy


@compiled
def empty(m: int, n: int, like: Array) -> Array:
    """A matrix to be filled, column after column."""
    rows = np.empty((n, m), like.dtype)
    if rows.nbytes >= LARGE:
        ask_for_large_pages(rows)
    return rows.T


@compiled
def fill_with_identity(A: Array) -> None:
    """Ones on the diagonal, zeros elsewhere."""
    for j in range(len(A)):
        for i in range(len(A)):
            A[i, j] = 0
        A[j, j] = 1


@compiled
def copy_to(target: Array, source: Array) -> None:
    """Entry by entry, whatever their strides."""
    if target.strides[1] <= target.strides[0] and source.strides[1] <= source.strides[0]:
        _copy_rows(target, source)
    elif target.strides[0] <= target.strides[1] and source.strides[0] <= source.strides[1]:
        _copy_rows(target.T, source.T)
    else:
        _copy_across(target, source)


@compiled
def _copy_rows(target: Array, source: Array) -> None:
    are_packed = target.strides[1] == target.itemsize == source.strides[1]
    for i in range(len(target)):
        if are_packed:
            _copy_row(packed(target[i]), packed(source[i]))
        else:
            _copy_row(target[i], source[i])


@compiled
def _copy_row(target: Array, source: Array) -> None:
    for j in range(len(target)):
        target[j] = source[j]


@compiled
def _copy_across(target: Array, source: Array) -> None:
    """Some lines of the cache at a time: of so many rows, whose number the compiler knows."""
    m, n = target.shape
    if n * target.itemsize >= _LONG:
        _copy_tiles(target, source)
        return
    strips, few = m // 32 * 32, m // _TILE * _TILE
    for first in range(0, strips, 32):
        _copy_strip(target, source, first, 32)
    for first in range(strips, few, _TILE):
        _copy_strip(target, source, first, _TILE)
    for i in range(few, m):
        _copy_strip(target, source, i, 1)


@inlined
def _copy_strip(target: Array, source: Array, first: int, count: int) -> None:
    for j in range(target.shape[1]):
        for i in range(count):
            target[first + i, j] = source[first + i, j]


@compiled
def _copy_tiles(target: Array, source: Array) -> None:
    """Tile by tile: of longer columns, a power of two apart, the first is out of the cache at the end."""
    m, n = target.shape
    for first in range(0, m - _TILE + 1, _TILE):
        for column in range(0, n - _TILE + 1, _TILE):
            _copy_tile(target, source, first, column, _TILE)
        for column in range(n // _TILE * _TILE, n):
            _copy_tile(target, source, first, column, 1)
    for i in range(m // _TILE * _TILE, m):
        _copy_row(target[i], source[i])


@inlined
def _copy_tile(target: Array, source: Array, first: int, column: int, columns: int) -> None:
    for j in range(column, column + columns):
        for i in range(first, first + _TILE):
            target[i, j] = source[i, j]


@compiled
def conjugate(F: Array) -> None:
    """In place; of real numbers the compiler leaves nothing."""
    for i in range(F.shape[0]):
        for j in range(F.shape[1]):
            F[i, j] = np.conj(F[i, j])


@compiled
def sum_of_all_squares(F: Array) -> float:
    """Of the entries of F."""
    total = 0.0
    for j in range(F.shape[1]):
        total += sum_of_squares(F.T[j])
    return total


@compiled
def moderate_squares(F: Array) -> float:
    """The sum of squares of the entries of F, or −1 where its norm is far from one."""
    return squares_if_moderate(F, sum_of_all_squares(F))


@compiled
def squares_if_moderate(F: Array, squares: float) -> float:
    """The sum of squares that is given, or −1 where the norm is far from one.

    The limits are those of `operations.homogeneous`; a norm of zero is near enough.
    """
    most = 2.0**340 if np.finfo(F.real.dtype).eps < 1e-10 else 2.0**42
    if 1 / most < squares < most:
        return squares
    if squares != 0:
        return -1.0
    for row in F:
        for entry in row:
            if entry != 0:
                return -1.0
    return 0.0


@compiled
def moderate_columns(A: Array) -> tuple[Array, float]:
    """A copy, column after column, and its `moderate_squares`."""
    F = by_columns(A)
    return F, moderate_squares(F)


@compiled
def normalize(F: Array) -> float:
    """Divide F by a power of two where its norm is far from one: that power, one where there is no need.

    Zero where F is not finite, or the power or its reciprocal is out of range.
    """
    return _normalize(F, sum_of_all_squares(F))


@compiled
def _normalize(F: Array, squares: float) -> float:
    if squares_if_moderate(F, squares) >= 0:
        return 1.0
    largest = 0.0
    for row in F:
        for entry in row:
            largest = max(largest, abs(entry.real), abs(entry.imag))
    exponent = math.frexp(largest)[1]
    most = 900 if np.finfo(F.real.dtype).eps < 1e-10 else 100
    if np.isnan(squares) or largest == np.inf or abs(exponent) > most:
        return 0.0
    multiply(F, math.ldexp(1.0, -exponent))
    return math.ldexp(1.0, exponent)


@compiled
def is_near_one(F: Array) -> bool:
    """Whether `normalize` would leave it alone; false, too, where neither rows nor columns are packed."""
    if F.strides[1] == F.itemsize:
        return bool(squares_if_moderate(F, _squares_of_rows(F)) >= 0)
    if F.strides[0] == F.itemsize:
        return bool(squares_if_moderate(F, _squares_of_rows(F.T)) >= 0)
    return False


@compiled
def _squares_of_rows(F: Array) -> float:
    total = 0.0
    for row in F:
        total += sum_of_squares(packed(row))
    return total


@compiled
def copy_near_one(target: Array, source: Array) -> float:
    """`copy_to` and `normalize`."""
    if target.strides[1] == target.itemsize == source.strides[1]:
        return _copy_rows_near_one(target, source)
    if target.strides[0] == target.itemsize == source.strides[0]:
        return _copy_rows_near_one(target.T, source.T)
    copy_to(target, source)
    return normalize(target.T) if target.strides[1] == target.itemsize else normalize(target)


@compiled
def _copy_rows_near_one(target: Array, source: Array) -> float:
    """Reads each row while it is near."""
    squares = 0.0
    for i in range(len(target)):
        row = packed(target[i])
        _copy_row(row, packed(source[i]))
        squares += sum_of_squares(row)
    return _normalize(target, squares)


@compiled
def multiply(F: Array, power: float) -> None:
    """F times a power of two, such as `normalize` returns."""
    if power != 1:
        factor = F.real.dtype.type(power)
        for i in range(F.shape[0]):
            for j in range(F.shape[1]):
                F[i, j] *= factor


@compiled
def eliminated(F: Array, swaps: Array) -> bool:
    """A = P L U in place; whether no pivot was zero. If one was, nothing is to be read."""
    if max(F.shape) <= MOST:
        return bool(eliminate_small(F, swaps))
    info = np.zeros(1, np.int32)
    eliminate(F, swaps, info)
    return bool(info[0] == 0)


@compiled
def factor(F: Array, swaps: Array, before: Array) -> float:
    """Eliminate in place; `moderate_squares`, and −1, too, for a zero pivot or a column of U too long.

    The last is scratch, a number a column.
    """
    squares = 0.0
    for j in range(len(F)):
        before[j] = sum_of_squares(F.T[j])
        squares += before[j]
    squares = squares_if_moderate(F, squares)
    if squares < 0:
        return squares
    if not eliminated(F, swaps):
        return -1.0
    limit = growth_limit(len(F)) ** 2
    for j in range(NEVER_GROWS, len(F)):
        if not sum_of_squares(F.T[j, : j + 1]) <= limit * before[j]:
            return -1.0
    return squares


@compiled
def write_inverse(LU: Array, swaps: Array, X: Array) -> None:
    """X = U⁻¹ L⁻¹ Pᵀ, from what `eliminated` has left; a fourth less than to solve with the identity."""
    n = len(LU)
    fill_with_identity(X)
    if n <= MOST:
        multiply_inverse_small(LU, X)
    else:
        for first in range(0, n, _BLOCK):
            solve_unit_lower(LU[first:, first:], X[first:, first : min(first + _BLOCK, n)])
        solve_upper(LU, X)
    for i in range(n - 1, -1, -1):
        other = swaps[i] - 1
        for r in range(n if other != i else 0):
            X[r, i], X[r, other] = X[r, other], X[r, i]


@compiled
def solve_in_place(LU: Array, swaps: Array, X: Array) -> None:
    """X ← A⁻¹X, from what `eliminated` has left."""
    if len(LU) <= MOST:
        solve_small(LU, swaps, X)
    else:
        solve_with(LU, swaps, X)


@compiled
def solve_lower_in_place(L: Array, X: Array) -> None:
    """X ← L⁻¹ X of a lower triangle, whose columns or rows lie one after the other."""
    if X.size <= MOST_OF_SUBSTITUTION:
        solve_lower_small(L, X)
    elif L.strides[0] == L.itemsize:
        solve_lower(L, X)
    else:
        solve_upper_transposed(L.T, X)


@compiled
def solve_lower_adjoint_in_place(L: Array, X: Array) -> None:
    """X ← L⁻ᴴ X, likewise."""
    if X.size <= MOST_OF_SUBSTITUTION:
        solve_lower_adjoint_small(L, X)
    elif L.strides[0] == L.itemsize:
        solve_lower_adjoint(L, X)
    else:
        conjugate(X)
        solve_upper(L.T, X)
        conjugate(X)
