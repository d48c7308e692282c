r"""The reverse of a Cholesky factorization A = L Lᴴ, as in `strategies.builtin.blocked_cholesky`.

With T the transpose of the Hermitian gradient, which starts as that of the cotangent, and T₂₂ finished:

    T₁₂ ← L₁₁⁻ᵀ (T₁₂ / 2 − L₂₁ᵀ T₂₂)              T₂₁ ← T₁₂ᴴ
    T₁₁ ← T₁₁ − 2 L₂₁ᵀ T₂₁,                        and T₁₁ as a matrix by itself.

The result depends on the lower triangle of the cotangent only. Matrices hold their columns one after the
other, as BLAS has them.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    halve_and_subtract_transposed_times,
    solve_lower_transposed,
    subtract_twice_transposed_times,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    group_size,
    groups,
    inlined,
    matrices,
    packed,
    reordered,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import conjugate, copy_to
from strategies.kernels.cpu.loops.elimination import TINY
from strategies.kernels.cpu.loops.grouped import gather, scatter

# Columns of a block, of one where there are many columns, and of the blocks that it is made of.
_WIDE = 96
_WIDER, _MANY = 144, 1024
_NARROW = 24


def small(task: Task) -> None:
    """The reverse with blocks of one column; the lower triangle is mirrored at the end."""
    factor, cotangent, result = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    n = factor.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        L, S = gather(factor, start, lanes), gather(cotangent, start, lanes)
        for j in range(n - 1, -1, -1):
            for r in range(j, n):
                for lane in range(lanes):
                    S[r, j, lane] *= 0.5
            for c in range(j + 1, n):
                for lane in range(lanes):
                    S[c, j, lane] -= S[c, c, lane] * L[c, j, lane]
                for r in range(c + 1, n):
                    for lane in range(lanes):
                        S[r, j, lane] -= S[r, c, lane] * L[c, j, lane]
                        S[c, j, lane] -= np.conj(S[r, c, lane]) * L[r, j, lane]
            for r in range(j + 1, n):
                for lane in range(lanes):
                    S[r, j, lane] /= L[j, j, lane]
                    S[j, j, lane] -= np.conj(L[r, j, lane]) * S[r, j, lane]
            for lane in range(lanes):
                S[j, j, lane] = np.real(S[j, j, lane]) / np.real(L[j, j, lane])
        for c in range(n):
            for r in range(c):
                for lane in range(lanes):
                    S[r, c, lane] = np.conj(S[c, r, lane])
        scatter(S, result, start)


def blocked(task: Task) -> None:
    """Block by block."""
    factors, cotangents, results = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    scratch = scratch_of_blocks(factors)
    for i in single_matrices(task):
        reverse(factors[i], cotangents[i], results[i].T, scratch)


@compiled
def scratch_of_blocks(matrices: Array) -> Array:
    """What `reverse` works in."""
    return np.empty((2, _NARROW, _NARROW), matrices.dtype)


@compiled
def reverse(L: Array, G: Array, T: Array, scratch: Array) -> None:
    """Write T from a cotangent, which may be the transpose of T."""
    n = len(L)
    if n <= _NARROW:
        _reverse_small(L, G.T, T, scratch)
        return
    width = _WIDER if n > _MANY else _WIDE
    for start in range((n - 1) // width * width, -1, -width):
        stop = min(start + width, n)
        copy_to(T[start:stop, start:], G[start:, start:stop].T)
        _finish_beside(L, T, start, stop)
        _reverse_block(L[start:stop, start:stop], T[start:stop, start:stop], scratch)


@compiled
def _reverse_block(L: Array, T: Array, scratch: Array) -> None:
    n = len(L)
    for start in range((n - 1) // _NARROW * _NARROW, -1, -_NARROW):
        stop = min(start + _NARROW, n)
        _finish_beside(L, T, start, stop)
        block = T[start:stop, start:stop]
        _reverse_small(L[start:stop, start:stop], block, block, scratch)


@compiled
def _finish_beside(L: Array, T: Array, start: int, stop: int) -> None:
    """All of a block's recurrences but the last, which it leaves as one of the block alone."""
    n = len(L)
    if stop == n:
        return
    below, right, mirrored = L[stop:, start:stop], T[start:stop, stop:], T[stop:, start:stop]
    halve_and_subtract_transposed_times(right, below, T[stop:, stop:])
    solve_lower_transposed(L[start:stop, start:stop], right)
    copy_to(mirrored, right.T)
    conjugate(mirrored.T)
    subtract_twice_transposed_times(T[start:stop, start:stop], below, mirrored)


@reordered
def _reverse_small(L: Array, S: Array, T: Array, scratch: Array) -> None:
    """A matrix by itself, in copies of a size the compiler knows; S may be T."""
    if len(L) <= TINY // 2:
        _reverse_padded(L, S, T, scratch, TINY // 2)
    elif len(L) <= TINY:
        _reverse_padded(L, S, T, scratch, TINY)
    elif len(L) <= 2 * TINY:
        _reverse_padded(L, S, T, scratch, 2 * TINY)
    else:
        _reverse_padded(L, S, T, scratch, _NARROW)


@inlined
def _reverse_padded(L: Array, S: Array, T: Array, scratch: Array, width: int) -> None:
    """A column at a time, whose products with the finished ones are of whole columns, however short.

    The copy is Hermitian where it is finished; before, its lower triangle counts.
    """
    n = len(L)
    t, product = scratch[0].T, scratch[1, 0]
    for c in range(width):
        for r in range(width):
            t[r, c] = 0
    for c in range(n):
        for r in range(c + 1):
            t[c, r] = np.conj(S[r, c])
    for j in range(n - 1, -1, -1):
        column = packed(L.T[j])
        for c in range(width):
            product[c] = 0
        last = j + 1 + (n - j - 1) // 4 * 4
        for r in range(j + 1, last, 4):
            first, second = np.conj(column[r]), np.conj(column[r + 1])
            third, fourth = np.conj(column[r + 2]), np.conj(column[r + 3])
            for c in range(width):
                product[c] += (t[c, r] * first + t[c, r + 1] * second) + (
                    t[c, r + 2] * third + t[c, r + 3] * fourth
                )
        for r in range(last, n):
            entry = np.conj(column[r])
            for c in range(width):
                product[c] += t[c, r] * entry
        reciprocal = 1 / np.real(column[j])
        diagonal = np.real(t[j, j]) / 2
        for c in range(j + 1, n):
            entry = (t[c, j] / 2 - product[c]) * reciprocal
            t[c, j], t[j, c] = entry, np.conj(entry)
            diagonal -= np.real(column[c] * entry)
        t[j, j] = diagonal * reciprocal
    for c in range(n):
        column = packed(T.T[c])
        for r in range(n):
            column[r] = t[r, c]
