"""One matrix as LAPACK wants it, column after column, and what there is to know of it beforehand.

A loop over such matrices asks for the usual case: norms near one, pivots that are not zero, no growth.
Everything else it reports, and leaves to the operations of torch.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import eliminate
from strategies.kernels.cpu.loops.arguments import Array, compiled, reordered
from strategies.kernels.cpu.loops.condition import growth_limit

_NEVER_GROWS = 4
"""Columns of U up to here stay within the limit: they double, or grow 1 + √2 fold."""


@compiled
def by_columns(A: Array) -> Array:
    """A copy, column after column."""
    m, n = A.shape
    copy = empty(m, n, A)
    for j in range(n):
        for i in range(m):
            copy[i, j] = A[i, j]
    return copy


@compiled
def empty(m: int, n: int, like: Array) -> Array:
    """A matrix to be filled, column after column."""
    return np.empty((n, m), like.dtype).T


@compiled
def zeros(m: int, n: int, like: Array) -> Array:
    """A zero matrix, column after column."""
    return np.zeros((n, m), like.dtype).T


@compiled
def fill_with_identity(A: Array, scale: complex) -> None:
    """A multiple of the identity."""
    A[:] = 0
    for i in range(len(A)):
        A[i, i] = scale


@compiled
def copy_to(target: Array, source: Array) -> None:
    """Entry by entry, whatever their strides."""
    m, n = target.shape
    for i in range(m):
        for j in range(n):
            target[i, j] = source[i, j]


@reordered
def sum_of_squares(row: Array) -> float:
    """Of contiguous numbers, in double precision."""
    total = 0.0
    for entry in row:
        total += np.float64(entry.real) ** 2 + np.float64(entry.imag) ** 2
    return total


@compiled
def squares_of_columns(F: Array) -> Array:
    """The sum of squares of each column of F."""
    sums = np.empty(F.shape[1])
    for j in range(F.shape[1]):
        sums[j] = sum_of_squares(F.T[j])
    return sums


@compiled
def is_moderate(F: Array, squares: float) -> bool:
    """Whether the norm is zero or not far from one, as in `operations.homogeneous`.

    Args:
        F: the matrix.
        squares: the sum of the squares of its entries.
    """
    most = 2.0**340 if np.finfo(F.real.dtype).eps < 1e-10 else 2.0**42
    if 1 / most < squares < most:
        return True
    if squares != 0:
        return False
    for row in F:
        for entry in row:
            if entry != 0:
                return False
    return True


@compiled
def moderate_columns(A: Array) -> tuple[Array, bool]:
    """A copy, column after column, and whether its norm is moderate."""
    F = by_columns(A)
    return F, is_moderate(F, squares_of_columns(F).sum())


@compiled
def factor(F: Array, swaps: Array) -> bool:
    """Eliminate in place; whether the norm is moderate, no pivot zero and no column of U too long."""
    n = len(F)
    before = squares_of_columns(F)
    if not is_moderate(F, before.sum()):
        return False
    info = np.zeros(1, np.int32)
    eliminate(F, swaps, info)
    if info[0] != 0:
        return False
    limit = growth_limit(n) ** 2
    for j in range(_NEVER_GROWS, n):  # noqa: SIM110 - Numba knows no `all`
        if not sum_of_squares(F.T[j, : j + 1]) <= limit * before[j]:
            return False
    return True
