"""Which pivots of packed LU factors may be roundoff, as `strategies.factors.lu_rank` has it.

D is what roundoff is expected to be in a pivot, and a regular one is `_REGULAR` times as large. The
cheapest test that is sure answers: bounds for most matrices, random vectors for most pivots of large ones,
and D itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.kernels.cpu.loops.arguments import Array, compiled, reordered
from strategies.kernels.cpu.loops.condition import first_vector, sum_of_squares
from strategies.kernels.cpu.loops.small import modulus

_REGULAR = 3.0
"""How often a pivot is more than the roundoff that is expected in it, at least."""

_SMALL = 24
"""Rows up to which random vectors save no time."""

_MODERATE = 256
"""Rows up to which |L||U| takes less time than the operations of torch that ask again."""

_FEW, _SAFETY = 8, 20.0
"""An estimate from so few random vectors is all but never so many times too small."""


@compiled
def clear_pivots(F: Array, safety: float) -> int:
    """So many of the first pivots are regular by bounds that hold for all signs of the entries of L and U.

    Of the last, safety is asked: it is to be regular by such a factor.

    With R, C, y and x as in `_candidates`: as L⁻¹ L = I, y_i = e_i − Σ l_is y_s, the sum over s < i, and so
    ‖y_i R‖ ≤ R_i + Σ |l_is| ‖y_s R‖. In the same way ‖C x_i‖ ≤ (C_i + Σ |u_si| ‖C x_s‖) / |u_ii|.
    """
    k = len(F)
    bounds = np.zeros((3, k))
    of_y, of_x, of_L = bounds[0], bounds[1], bounds[2]
    limit = _limit(F)
    for i in range(k):
        of_U, terms, pivot = 0.0, 0.0, float(abs(F[i, i]))
        for s in range(i + 1):
            of_U += _square(F[s, i])
        for s in range(i):
            terms += modulus(F[s, i]) * of_x[s]
        of_x[i] = (max(np.sqrt(of_U), pivot) + terms) / pivot  # the squares may underflow
        of_y[i] += np.sqrt(1 + of_L[i])
        if not of_y[i] * of_x[i] < (limit if i < k - 1 else limit / safety):
            return i
        for s in range(i + 1, k):
            of_L[s] += _square(F[s, i])
            of_y[s] += modulus(F[s, i]) * of_y[i]
    return k


@compiled
def some_pivot_may_be_roundoff(F: Array) -> bool:
    """Of packed factors; or is not finite. Most pivots tell after reading one row and one column."""
    k = min(F.shape)
    small = min(np.finfo(F.real.dtype).eps ** 0.25, 4 * k**-1.5)
    for i in range(k):
        pivot = abs(F[i, i])
        terms = pivot
        for s in range(i):
            terms += abs(F[i, s]) * abs(F[s, i])
        if not pivot > small * terms:
            # Of so many entries that are left then, the mean may be roundoff although the pivot is regular.
            left = (F.shape[0] - k + 1) * (F.shape[1] - k + 1)
            return _doubtful_pivots(F[:k, :k], max(1.0, np.sqrt(left) / 2), 1) > 0
    return False


@compiled
def several_pivots_may_be_roundoff(F: Array) -> bool:
    """Of square factors."""
    return _doubtful_pivots(F, 1.0, 2) > 1


@compiled
def last_pivot_may_be_roundoff(F: Array) -> bool:
    """Of square factors."""
    k = len(F)
    if clear_pivots(F, 1.0) == k:
        return False
    columns, squares = _in_double_precision(F)
    return _irregular(columns, squares, np.arange(k) == k - 1, _limit(F), 1.0, 1) > 0


@compiled
def _doubtful_pivots(F: Array, safety: float, enough: int) -> int:
    """How many there are, but no more than that; safety is asked of the last."""
    k = len(F)
    first = clear_pivots(F, safety)
    if first == k:
        return 0
    columns, squares = _in_double_precision(F)
    candidates = np.arange(k) >= first
    if k > _SMALL:
        candidates = _candidates(columns, squares, _limit(F))
    return _irregular(columns, squares, candidates, _limit(F), safety, enough)


@compiled
def _limit(F: Array) -> float:
    """What D over ε and a regular pivot stays below."""
    return float(1 / (_REGULAR * np.finfo(F.real.dtype).eps))


@compiled
def _in_double_precision(F: Array) -> tuple[Array, Array]:
    """Columns one after the other, and the squares of R and C, as in `_candidates`, as two rows."""
    k = len(F)
    columns, squares = F.T * np.float64(1), np.zeros((2, k))
    for i in range(k):
        squares[0, i] += 1
        squares[1, i] = sum_of_squares(columns[i, : i + 1])
        for s in range(i + 1, k):
            squares[0, s] += _square(columns[i, s])
    return columns, squares


@compiled
def _square(x: complex) -> float:
    """Of the modulus, in double precision."""
    real, imag = np.float64(x.real), np.float64(x.imag)
    return real * real + imag * imag


@compiled
def _irregular(
    columns: Array, squares: Array, candidates: Array, limit: float, safety: float, enough: int
) -> int:
    """How many of them are not regular, the last one by a factor: `lu_rank.regular_pivots`.

    With T = |L||U|, y and x as in `_candidates`, D² / |u_ii|² is the sum of squares of |y|_a T_ab |x|_b,
    and at most ‖y R‖² ‖C x‖², which counts for it in large matrices.
    """
    k = len(columns)
    y, x = np.empty_like(columns[0]), np.empty_like(columns[0])
    T = squares[:, :0]
    count = 0
    for i in range(k):
        if not candidates[i] or count == enough:
            continue
        if i == k - 1:
            limit /= safety
        _write_rows_of_inverses(columns, i, y, x)
        of_y, of_x = 0.0, 0.0
        for s in range(i + 1):
            of_y += _square(y[s]) * squares[0, s]
            of_x += _square(x[s]) * squares[1, s]
        if np.sqrt(of_y) * np.sqrt(of_x) < limit:
            continue
        if k <= _MODERATE:
            if T.size == 0:
                T = _product_of_moduli(columns)
            count += not _deviation(y[: i + 1], T, x[: i + 1]) < limit
        else:
            count += 1
    return count


@compiled
def _write_rows_of_inverses(columns: Array, i: int, y: Array, x: Array) -> None:
    """Row i of L⁻¹ and column i of U⁻¹."""
    y[i], x[i] = 1, 1
    for s in range(i):
        x[s] = 0
    for s in range(i, -1, -1):
        if s < i:
            y[s] = -_dot(columns[s, s + 1 : i + 1], y[s + 1 : i + 1])
        pivot = columns[s, s]
        x[s] *= np.conj(pivot) * (1 / _square(pivot))
        _subtract_multiple(x[:s], columns[s, :s], x[s])


@compiled
def _deviation(y: Array, T: Array, x: Array) -> float:
    """The root of the sum of the squares of |y|_a T_ab |x|_b."""
    total, moduli = 0.0, np.abs(x)
    for a in range(len(y)):
        weight = abs(y[a])
        for b in range(len(x)):
            term = weight * T[a, b] * moduli[b]
            total += term * term
    return float(np.sqrt(total))


@compiled
def _product_of_moduli(columns: Array) -> Array:
    """|L||U|."""
    k = len(columns)
    product = np.zeros((k, k))
    for s in range(k):
        for j in range(s, k):
            factor = abs(columns[j, s])
            product[s, j] += factor
            for i in range(s + 1, k):
                product[i, j] += abs(columns[s, i]) * factor
    return product


@compiled
def _candidates(columns: Array, squares: Array, limit: float) -> Array:
    """Pivots that may not be `_REGULAR` times what roundoff is expected to be; also those of NaN.

    Roundoff is D with a bound of |L||U|: the norms of a row of L and a column of U, by Cauchy and Schwarz,
    which makes it two to four times as much. Let R and C be diagonal matrices of those norms. Beside the
    pivot it is ε ‖y R‖ ‖C x‖ then, y being a row of L⁻¹, and x a column of U⁻¹. The entries of L⁻¹ R z and
    U⁻ᵀ C z, for random z, have those norms as standard deviations: two substitutions for all pivots
    together.
    """
    k = len(columns)
    y, x = np.zeros((_FEW, k), columns.dtype), np.empty((_FEW, k), columns.dtype)
    z = first_vector(_FEW * k).reshape(_FEW, k)
    z *= np.sqrt(z.size / sum_of_squares(z.ravel()))
    result = np.empty(k, np.bool_)
    for i in range(k):
        column, pivot = columns[i], columns[i, i]
        reciprocal = np.conj(pivot) * (1 / _square(pivot))
        of_row, of_U = np.sqrt(squares[0, i]), np.sqrt(squares[1, i])
        squares_of_y, squares_of_x = 0.0, 0.0
        for p in range(_FEW):
            y[p, i] += of_row * z[p, i]
            x[p, i] = (of_U * z[p, i] - _dot(column[:i], x[p, :i])) * reciprocal
            squares_of_y += _square(y[p, i])
            squares_of_x += _square(x[p, i])
            _subtract_multiple(y[p, i + 1 :], column[i + 1 :], y[p, i])
        # z may be orthogonal to y R or C x; neither is shorter than its last entry. NaN stays.
        least_of_y, least_of_x = _FEW * squares[0, i], _FEW * (of_U * abs(reciprocal)) ** 2
        if squares_of_y < least_of_y:
            squares_of_y = least_of_y
        if squares_of_x < least_of_x:
            squares_of_x = least_of_x
        result[i] = not np.sqrt(squares_of_y) * np.sqrt(squares_of_x) * _SAFETY < limit * _FEW
    return result


@compiled
def _subtract_multiple(y: Array, x: Array, factor: complex) -> None:
    for i in range(len(y)):
        y[i] -= x[i] * factor


@reordered
def _dot(x: Array, y: Array) -> Any:
    total = x.dtype.type(0)
    for i in range(len(x)):
        total += x[i] * y[i]
    return total
