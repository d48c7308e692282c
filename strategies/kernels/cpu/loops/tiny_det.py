"""Determinants of up to eight rows, in a copy of a size that the compiler knows.

What a matrix lacks to that size is an identity, which changes neither pivots nor determinant.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import Array, compiled, inlined
from strategies.kernels.cpu.loops.condition import growth_limit
from strategies.kernels.cpu.loops.small import modulus
from strategies.kernels.cpu.loops.tiny import eliminate

MOST = 8
"""Rows."""


@compiled
def determinant(A: Array, LU: Array, swaps: Array, scratch: Array) -> tuple[bool, complex]:
    """Write the factors of a matrix that is easy; whether it is, and its determinant then.

    Easy is what `inspection.is_hard` sees at first sight not to be hard, with a determinant whose factors
    are all in range. The last is scratch, two rows of real numbers.
    """
    if len(LU) <= 4:
        return _determinant(A, LU, swaps, scratch[0], scratch[1], 4)
    if len(LU) <= 6:
        return _determinant(A, LU, swaps, scratch[0], scratch[1], 6)
    return _determinant(A, LU, swaps, scratch[0], scratch[1], MOST)


@inlined
def _determinant(
    A: Array, LU: Array, swaps: Array, columns: Array, reciprocals: Array, size: int
) -> tuple[bool, complex]:
    n = len(LU)
    F, order = np.empty((size, size), LU.dtype), np.empty(size, np.int32)
    zero = columns[0] * 0
    for c in range(size):
        for r in range(size):
            F[r, c] = r == c
    for c in range(n):
        largest = zero
        for r in range(n):
            F[r, c] = A[r, c]
            largest = max(largest, modulus(F[r, c]))
        columns[c], reciprocals[c] = largest, 1 / largest
    least_row = zero + 1
    for r in range(n):
        largest = zero
        for c in range(n):
            largest = max(largest, modulus(F[r, c]) * reciprocals[c])
        least_row = min(least_row, largest)
    is_easy, growth = eliminate(F, order, size), zero
    for c in range(n):
        for r in range(c + 1):
            growth = max(growth, modulus(F[r, c]) * reciprocals[c])
    growth *= 2  # |L| is at most √2, as in `inspection`
    is_easy &= growth <= growth_limit(n) * least_row
    small, product = np.sqrt(np.finfo(columns.dtype).eps), LU.dtype.type(1)
    far = 2.0 ** (1000 // MOST) if small < 1e-5 else 2.0 ** (120 // MOST)
    for c in range(n):
        pivot = modulus(F[c, c])
        is_easy &= pivot > small * growth * columns[c] and 1 / far < pivot
        is_easy &= columns[c] < far and pivot < far
        product *= F[c, c] if order[c] == c + 1 else -F[c, c]
    if is_easy:
        for c in range(n):
            swaps[c] = order[c]
            for r in range(n):
                LU[r, c] = F[r, c]
    return is_easy, product
