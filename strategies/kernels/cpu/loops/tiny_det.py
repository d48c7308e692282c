"""Determinants of few rows, as `tiny` computes."""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    contiguous,
    inlined,
    integers,
    matrices,
    numbers,
    pivots,
    reals,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.condition import growth_limit
from strategies.kernels.cpu.loops.fused_forward import inspected, logarithm_of, power_of_two_times
from strategies.kernels.cpu.loops.small import modulus
from strategies.kernels.cpu.loops.tiny import copy_to, eliminate


def det(task: Task, n: int) -> None:
    """`fused_forward.det`."""
    A, result, LU = matrices(task, 0), numbers(task, 1), contiguous(task, 2)
    swaps, mantissa, exponent = pivots(task, 3), numbers(task, 4), integers(task, 5)
    F, largest = np.empty((n, n), LU.dtype), np.empty((2, n), LU.real.dtype)
    order, scratch = np.empty(n, np.int64), np.empty((3, n), LU.real.dtype)
    for i in single_matrices(task):
        is_usual, product = _determinant(A[i], LU[i].T, swaps[i], F, largest, n)
        power = 0
        if not is_usual:
            product, power, is_usual = inspected(A[i], LU[i].T, swaps[i], order, scratch)
        mantissa[i, 0], exponent[i, 0] = product, power
        result[i, 0] = power_of_two_times(product, power)
        if not is_usual:
            report(task)


def slogdet(task: Task, n: int) -> None:
    """`fused_forward.slogdet`."""
    A, sign, logarithm = matrices(task, 0), numbers(task, 1), reals(task, 2)
    LU, swaps = contiguous(task, 3), pivots(task, 4)
    F, largest = np.empty((n, n), LU.dtype), np.empty((2, n), LU.real.dtype)
    order, scratch = np.empty(n, np.int64), np.empty((3, n), LU.real.dtype)
    for i in single_matrices(task):
        is_usual, product = _determinant(A[i], LU[i].T, swaps[i], F, largest, n)
        power = 0
        if not is_usual:
            product, power, is_usual = inspected(A[i], LU[i].T, swaps[i], order, scratch)
        if is_usual:
            sign[i, 0], logarithm[i, 0] = logarithm_of(product, power)
        else:
            report(task)


@inlined
def _determinant(
    A: Array, LU: Array, swaps: Array, F: Array, largest: Array, n: int
) -> tuple[bool, complex]:
    """Write the factors of a matrix; whether it is easy, and its determinant then.

    Easy is what `inspection.is_hard` sees at first sight not to be hard, with a determinant whose factors
    are all in range. The last two arrays are scratch.
    """
    zero = largest[0, 0] * 0
    for c in range(n):
        of_column = zero
        for r in range(n):
            F[r, c] = A[r, c]
            of_column = max(of_column, modulus(F[r, c]))
        largest[0, c], largest[1, c] = of_column, 1 / of_column
    least_row = zero + 1
    for r in range(n):
        of_row = zero
        for c in range(n):
            of_row = max(of_row, modulus(F[r, c]) * largest[1, c])
        least_row = min(least_row, of_row)
    is_easy, growth = eliminate(F, swaps, n), zero
    copy_to(LU.T, F.T, n, n)
    for c in range(n):
        for r in range(c + 1):
            growth = max(growth, modulus(F[r, c]) * largest[1, c])
    growth *= 2  # |L| is at most √2, as in `inspection`
    is_easy &= growth <= growth_limit(n) * least_row
    small, product = np.sqrt(np.finfo(largest.dtype).eps), LU.dtype.type(1)
    far = 2.0 ** (1000 // n) if small < 1e-5 else 2.0 ** (120 // n)
    for c in range(n):
        pivot = modulus(F[c, c])
        is_easy &= pivot > small * growth * largest[0, c] and 1 / far < pivot
        is_easy &= largest[0, c] < far and pivot < far
        product *= F[c, c] if swaps[c] == c + 1 else -F[c, c]
    return is_easy, product
