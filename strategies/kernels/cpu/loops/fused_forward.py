"""The forward of small matrices: LAPACK's factors, what is solved with them, and what they are worth.

Each loop goes from matrix to matrix, and reports one that is not a usual case. Nothing is read then of
what it has written.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    apply_reflectors_adjoint,
    form_basis,
    reflect,
    solve_upper,
    solve_upper_transposed_from_right,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    integers,
    matrices,
    numbers,
    pivots,
    reals,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import (
    copy_to,
    eliminated,
    empty,
    factor,
    moderate_columns,
    moderate_squares,
    solve_in_place,
    sum_of_all_squares,
    write_inverse,
)
from strategies.kernels.cpu.loops.condition import smallest_singular_value, sum_of_squares
from strategies.kernels.cpu.loops.inspection import (
    determinant_of,
    inverse_of_swaps,
    is_hard,
    write_largest_of_columns,
)
from strategies.kernels.cpu.loops.roundoff import some_pivot_may_be_roundoff


@compiled
def _noise(A: Array, squares: float) -> float:
    """The square of the least singular value that is told from zero: see `strategies.refusals`."""
    level = 2 * max(A.shape[0], 8) * np.finfo(A.real.dtype).eps
    return float(level**2 * squares)


@compiled
def _invert(A: Array, X: Array, F: Array, swaps: Array, before: Array) -> float:
    """Write X = A⁻¹; returns what `factor` does, and writes nothing where that is negative.

    The last three are scratch. To eliminate the transpose would save a copy, but lose the digits of
    columns that are small beside others.
    """
    copy_to(F, A)
    squares = factor(F, swaps, before)
    if squares >= 0:
        write_inverse(F, swaps, X)
    return squares


def inv(task: Task) -> None:
    """A⁻¹ by columns."""
    A, X = matrices(task, 0), contiguous(task, 1)
    n = X.shape[1]
    F, swaps, before = empty(n, n, X), np.empty(n, np.int32), np.empty(n)
    for i in single_matrices(task):
        if _invert(A[i], X[i].T, F, swaps, before) < 0:
            report(task)


def pinv_of_square(task: Task) -> None:
    """A⁻¹ of a matrix that is not nearly deficient, by columns."""
    A, X = matrices(task, 0), contiguous(task, 1)
    n = X.shape[1]
    F, swaps, before = empty(n, n, X), np.empty(n, np.int32), np.empty(n)
    for i in single_matrices(task):
        squares = _invert(A[i], X[i].T, F, swaps, before)
        if squares < 0 or not _is_of_full_rank(X[i].T, A[i], squares):
            report(task)


@compiled
def _is_of_full_rank(X: Array, A: Array, squares: float) -> bool:
    """Whether A, whose inverse is X, is not nearly deficient; false of NaN."""
    return bool(sum_of_all_squares(X) * _noise(A, squares) < 1)


@compiled
def _copy_upper(R: Array, F: Array) -> bool:
    """The upper triangle of F, and zeros below; whether no entry of the diagonal is zero."""
    is_regular = True
    for j in range(len(R)):
        is_regular &= F[j, j] != 0
        for i in range(len(R)):
            R[i, j] = F[i, j] if i <= j else 0
    return is_regular


@compiled
def is_clear_triangle(R: Array, F: Array, squares: float) -> bool:
    """Copy R from F, what `reflect` left of a matrix; whether that is not nearly deficient.

    The sum of the squares of its entries is given.
    """
    return _copy_upper(R, F) and bool(smallest_singular_value(R.T, False) ** 2 > _noise(F, squares))


def pinv(task: Task) -> None:
    """A⁺ = R⁻¹Qᴴ of tall A that is not nearly deficient, row after row; Q and R by columns."""
    A, X, Q, R = matrices(task, 0), contiguous(task, 1), contiguous(task, 2), contiguous(task, 3)
    for i in single_matrices(task):
        if not _pinv(A[i], X[i], Q[i].T, R[i].T):
            report(task)


@compiled
def _pinv(A: Array, X: Array, Q: Array, R: Array) -> bool:
    m, n = A.shape
    copy_to(Q, A)
    squares = moderate_squares(Q)
    if squares < 0:
        return False
    scales, scratch = np.empty(n, A.dtype), np.empty(64 * n, A.dtype)
    reflect(Q, scales, scratch)
    if not _copy_upper(R, Q):
        return False
    form_basis(Q, scales, scratch)
    for j in range(n):
        for i in range(m):
            X[j, i] = np.conj(Q[i, j])
    solve_upper_transposed_from_right(R, X.T)
    return _is_of_full_rank(X.T, A, squares)


@compiled
def _solve(A: Array, B: Array, X: Array, LU: Array, swaps: Array, Y: Array, before: Array) -> float:
    """Write X = A⁻¹B and factors; what `factor` returns, or −1 for a B whose norm is far from one.

    The last two are scratch.
    """
    copy_to(LU, A)
    copy_to(Y, B)
    if moderate_squares(Y) < 0:
        return -1.0
    squares = factor(LU, swaps, before)
    if squares >= 0:
        solve_in_place(LU, swaps, Y)
        copy_to(X, Y)
    return squares


def solve(task: Task) -> None:
    """X = A⁻¹B, row after row; LU by columns and pivots."""
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    LU, swaps = contiguous(task, 3), pivots(task, 4)
    n, k = X.shape[1:]
    Y, before = empty(n, k, X), np.empty(n)
    for i in single_matrices(task):
        if _solve(A[i], B[i], X[i], LU[i].T, swaps[i], Y, before) < 0:
            report(task)


def lstsq_of_square(task: Task) -> None:
    """`solve` for a matrix that is not nearly deficient, and its rank."""
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    rank, LU, swaps = integers(task, 3), contiguous(task, 4), pivots(task, 5)
    n, k = X.shape[1:]
    Y, before = empty(n, k, X), np.empty(n)
    for i in single_matrices(task):
        squares = _solve(A[i], B[i], X[i], LU[i].T, swaps[i], Y, before)
        if squares < 0 or not smallest_singular_value(LU[i], True) ** 2 > _noise(A[i], squares):
            report(task)
        rank[i, 0] = n


def lstsq(task: Task) -> None:
    """X = A⁺B of tall A that is not nearly deficient, squared residuals, the rank; R by columns."""
    A, B, X = matrices(task, 0), matrices(task, 1), contiguous(task, 2)
    residuals, rank, R = reals(task, 3), integers(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        if not _lstsq(A[i], B[i], X[i], residuals[i], R[i].T):
            report(task)
        rank[i, 0] = A.shape[2]


@compiled
def _lstsq(A: Array, B: Array, X: Array, residuals: Array, R: Array) -> bool:
    n, k = A.shape[1], B.shape[1]
    F, squares = moderate_columns(A)
    Y, of_B = moderate_columns(B)
    if squares < 0 or of_B < 0:
        return False
    scales, scratch = np.empty(n, A.dtype), np.empty(64 * max(n, k), A.dtype)
    reflect(F, scales, scratch)
    if not is_clear_triangle(R, F, squares):
        return False
    apply_reflectors_adjoint(F, scales, Y, scratch)
    for j in range(k):
        residuals[j] = sum_of_squares(Y.T[j, n:])
    solve_upper(R, Y[:n])
    copy_to(X, Y[:n])
    return True


def lu_factor(task: Task) -> None:
    """LU by columns and pivots of a matrix whose rank is full beyond doubt; the inverse row order."""
    A, LU, swaps, order = (
        matrices(task, 0),
        contiguous(task, 1),
        pivots(task, 2),
        integers(task, 3),
    )
    for i in single_matrices(task):
        if not _factor_of_full_rank(A[i], LU[i].T, swaps[i], order[i]):
            report(task)


@compiled
def _factor_of_full_rank(A: Array, LU: Array, swaps: Array, order: Array) -> bool:
    copy_to(LU, A)
    if moderate_squares(LU) < 0 or not eliminated(LU, swaps):
        return False
    inverse_of_swaps(swaps, order)
    return not some_pivot_may_be_roundoff(LU)


def lu(task: Task) -> None:
    """`lu_factor`, and what it stands for: P, L and U, row after row."""
    A, LU, order = matrices(task, 0), contiguous(task, 4), integers(task, 5)
    P, L, U = contiguous(task, 1), contiguous(task, 2), contiguous(task, 3)
    swaps = np.empty(min(A.shape[1:]), np.int32)
    for i in single_matrices(task):
        if _factor_of_full_rank(A[i], LU[i].T, swaps, order[i]):
            _unpack(LU[i].T, order[i], P[i], L[i], U[i])
        else:
            report(task)


@compiled
def _unpack(LU: Array, order: Array, P: Array, L: Array, U: Array) -> None:
    m, n = LU.shape
    k = min(m, n)
    P[:] = 0
    for i in range(m):
        P[i, order[i]] = 1
        for j in range(k):
            L[i, j] = LU[i, j] if j < i else LU.dtype.type(i == j)
    for i in range(k):
        for j in range(n):
            U[i, j] = LU[i, j] if j >= i else 0


def det(task: Task) -> None:
    """Det A of a matrix that is not hard; LU by columns, pivots, and det A = mantissa · 2^exponent."""
    A, result, LU, swaps = (
        matrices(task, 0),
        numbers(task, 1),
        contiguous(task, 2),
        pivots(task, 3),
    )
    mantissa, exponent = numbers(task, 4), integers(task, 5)
    order, scratch = _inspected(LU)
    for i in single_matrices(task):
        product, power, is_usual = _determinant(A[i], LU[i].T, swaps[i], order, scratch)
        mantissa[i, 0], exponent[i, 0] = product, power
        result[i, 0] = power_of_two_times(product, power)
        if not is_usual:
            report(task)


@compiled
def power_of_two_times(mantissa: complex, exponent: int) -> complex:
    """The exponent is even, and its power of two may be beyond the range."""
    if exponent == 0:
        return mantissa
    half = 2.0 ** (exponent / 2)
    return mantissa * half * half


def slogdet(task: Task) -> None:
    """The sign and log|det A| of a matrix that is not hard; LU by columns and pivots."""
    A, sign, logarithm = matrices(task, 0), numbers(task, 1), reals(task, 2)
    LU, swaps = contiguous(task, 3), pivots(task, 4)
    order, scratch = _inspected(LU)
    for i in single_matrices(task):
        mantissa, exponent, is_usual = _determinant(A[i], LU[i].T, swaps[i], order, scratch)
        if is_usual:
            sign[i, 0], logarithm[i, 0] = logarithm_of(mantissa, exponent)
        else:
            report(task)


@compiled
def logarithm_of(mantissa: complex, exponent: int) -> tuple[complex, float]:
    """The sign, and the logarithm of the modulus."""
    modulus = abs(mantissa)
    return mantissa / modulus, np.log(modulus) + exponent * np.log(2.0)


@compiled
def _inspected(LU: Array) -> tuple[Array, Array]:
    """What `_determinant` works in."""
    n = LU.shape[1]
    return np.empty(n, np.int64), np.empty((3, n), LU.real.dtype)


@compiled
def _determinant(
    A: Array, LU: Array, swaps: Array, order: Array, scratch: Array
) -> tuple[complex, int, bool]:
    """Mantissa and exponent, and whether the matrix is not hard; the last two are scratch."""
    copy_to(LU, A)
    if not eliminated(LU, swaps):
        return LU[0, 0], 0, False
    return inspected(A, LU, swaps, order, scratch)


@compiled
def inspected(
    A: Array, LU: Array, swaps: Array, order: Array, scratch: Array
) -> tuple[complex, int, bool]:
    """The same of a matrix that is eliminated."""
    if not write_largest_of_columns(A, scratch[0]):
        return LU[0, 0], 0, False
    mantissa, exponent = determinant_of(LU, swaps)
    inverse_of_swaps(swaps, order)
    return mantissa, exponent, not is_hard(A, LU, order, scratch)
