r"""The reverse of an LU factorization, block by block, in one buffer.

Transposed, the recurrences of `builtin.blocked_lu` have no adjoint in them. With F = conj(LU)
and T = (L̄\Ū)ᵀ, and T₂₂ finished:

    T₁₂ ← U₁₁⁻¹ (T₁₂ − U₁₂ T₂₂)                     T₂₁ ← (T₂₁ − T₂₂ L₂₁) L₁₁⁻¹
    T₁₁ ← T₁₁ − triu₁(U₁₂ T₂₁) − tril(T₁₂ L₂₁),     and T₁₁ as a matrix by itself.

Matrices hold their columns one after the other, as BLAS has them.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import solve_unit_lower_from_right, solve_upper, subtract_product
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    inlined,
    integers,
    matrices,
    packed,
    reordered,
    single_matrices,
)

# Columns of a block, and of the blocks that it is made of. As measured from 24 to 2048 columns;
# products whose columns lie a power of two apart are slower.
_WIDE = 96
_NARROW = 48

TINY = 8
"""What a vector of double precision holds: copies of small matrices are this wide, half or twice."""


def reverse_elimination(task: Task) -> None:
    """Overwrite the cotangent of packed factors by the gradient of A, given their conjugate."""
    factors, inverse_order, bars = matrices(task, 0), integers(task, 1), matrices(task, 2)
    scratch = scratch_of_blocks(factors)
    for matrix in single_matrices(task):
        reverse(factors[matrix], bars[matrix].T, scratch)
        permute_columns(bars[matrix].T, inverse_order[matrix])


@compiled
def scratch_of_blocks(like: Array) -> Array:
    """What `reverse` works in."""
    return np.empty((4, _NARROW, _NARROW), like.dtype)


@compiled
def reverse(F: Array, T: Array, scratch: Array) -> None:
    """Overwrite the transposed cotangent by that of the matrix whose factors F is the conjugate of."""
    k = min(F.shape)
    for start in range((k - 1) // _WIDE * _WIDE, -1, -_WIDE):
        stop = min(start + _WIDE, k)
        _finish_beside(F, T, start, stop, scratch)
        _reverse_block(F[start:stop, start:stop], T[start:stop, start:stop], scratch)


@compiled
def _reverse_block(F: Array, T: Array, scratch: Array) -> None:
    k = len(F)
    for start in range((k - 1) // _NARROW * _NARROW, -1, -_NARROW):
        stop = min(start + _NARROW, k)
        _finish_beside(F, T, start, stop, scratch)
        _reverse_small(F[start:stop, start:stop], T[start:stop, start:stop], scratch)


@compiled
def _finish_beside(F: Array, T: Array, start: int, stop: int, scratch: Array) -> None:
    """All of a block's recurrences but the last, which it leaves as one of the block alone."""
    m, n = F.shape
    has_below, has_right = stop < m, stop < n
    block = F[start:stop, start:stop]
    right, below = T[start:stop, stop:], T[stop:, start:stop]
    if has_below and has_right:
        subtract_product(right, F[start:stop, stop:], T[stop:, stop:])
        subtract_product(below, T[stop:, stop:], F[stop:, start:stop])
    if has_below:
        solve_upper(block, right)
    if has_right:
        solve_unit_lower_from_right(block, below)
    if has_below or has_right:
        for i in range(start, stop, _NARROW):
            _subtract_strip(F, T, i, min(i + _NARROW, stop), stop, scratch)


@compiled
def _subtract_strip(F: Array, T: Array, i: int, j: int, stop: int, scratch: Array) -> None:
    """Rows and columns i to j of triu₁(U₁₂ T₂₁) and tril(T₁₂ L₂₁), right of and below T[i, i]."""
    m, n = F.shape
    U, L, right, below = F[:, stop:], F[stop:], T[:, stop:], T[stop:]
    upper, lower = scratch[0].T[: j - i, : j - i], scratch[1].T[: j - i, : j - i]
    upper[:] = 0
    lower[:] = 0
    if stop < n:
        subtract_product(upper, U[i:j], below[:, i:j])
        if j < stop:
            subtract_product(T[i:j, j:stop], U[i:j], below[:, j:stop])
    if stop < m:
        subtract_product(lower, right[i:j], L[:, i:j])
        if j < stop:
            subtract_product(T[j:stop, i:j], right[j:stop], L[:, i:j])
    for c in range(j - i):
        for r in range(j - i):
            T[i + r, i + c] += upper[r, c] if r < c else lower[r, c]


@reordered
def _reverse_small(F: Array, T: Array, scratch: Array) -> None:
    """A matrix by itself, in copies of a size the compiler knows."""
    if len(F) <= TINY // 2:
        _reverse_padded(F, T, scratch, TINY // 2)
    elif len(F) <= TINY:
        _reverse_padded(F, T, scratch, TINY)
    elif len(F) <= 2 * TINY:
        _reverse_padded(F, T, scratch, 2 * TINY)
    else:
        _reverse_padded(F, T, scratch, _NARROW)


@inlined
def _reverse_padded(F: Array, T: Array, scratch: Array, width: int) -> None:
    """A row and a column at a time.

    All rows of a column are read, and what is not needed is multiplied by zeros or not stored: two to
    five times faster than loops of varying lengths.
    """
    n = len(F)
    u, below, f, t = scratch[0, 0], scratch[1, 0], scratch[2].T, scratch[3].T
    for c in range(width):
        u[c] = 0
        for r in range(width):
            t[r, c] = 0
    for c in range(n):
        of_factors, of_cotangent = packed(F.T[c]), packed(T.T[c])
        for r in range(n):
            f[r, c] = of_factors[r]
            t[r, c] = of_cotangent[r]
    for j in range(n - 1, -1, -1):
        for c in range(j + 1, n):
            u[c] = f[j, c]
        for r in range(width):
            below[r] = t[r, j]
        reciprocal = 1 / f[j, j]
        for c in range(j + 1, n):
            column, multiple = t[:, c], f[c, j]
            product = F.dtype.type(0)
            for r in range(width):
                product += u[r] * column[r]
                below[r] -= column[r] * multiple
            t[j, c] = (t[j, c] - product) * reciprocal
        for c in range(j + 1, n):
            t[c, j] = below[c]
            t[j, j] -= t[j, c] * f[c, j]
    for c in range(n):
        result = packed(T.T[c])
        for r in range(n):
            result[r] = t[r, c]


@compiled
def permute_columns(T: Array, order: Array) -> None:
    """In place, cycle by cycle: column i of the result is column `order[i]`.

    Rows are copied by loops: of one slice assigned to another Numba compiles the error messages, too,
    which takes seconds.
    """
    rows, columns = T.shape
    is_done = np.zeros(columns, np.bool_)
    kept = np.empty(rows, T.dtype)
    for first in range(columns):
        if is_done[first] or order[first] == first:
            continue
        for r in range(rows):
            kept[r] = T[r, first]
        target = first
        while order[target] != first:
            source = order[target]
            for r in range(rows):
                T[r, target] = T[r, source]
            is_done[target] = True
            target = source
        for r in range(rows):
            T[r, target] = kept[r]
        is_done[target] = True
