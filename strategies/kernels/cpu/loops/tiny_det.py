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
from strategies.kernels.cpu.loops.fused_backward import multiply_by_power_of_two
from strategies.kernels.cpu.loops.fused_forward import inspected, logarithm_of, power_of_two_times
from strategies.kernels.cpu.loops.roundoff import clear_pivots
from strategies.kernels.cpu.loops.small import modulus
from strategies.kernels.cpu.loops.tiny import copy_to, eliminate, write_inverse


def det(task: Task, n: int) -> None:
    """`fused_forward.det`."""
    A, result, LU = matrices(task, 0), numbers(task, 1), contiguous(task, 2)
    swaps, mantissa, exponent = pivots(task, 3), numbers(task, 4), integers(task, 5)
    scratch = _scratch(LU, n)
    for i in single_matrices(task):
        product, power, is_usual = _determinant(A[i], LU[i].T, swaps[i], scratch, n)
        mantissa[i, 0], exponent[i, 0] = product, power
        result[i, 0] = power_of_two_times(product, power)
        if not is_usual:
            report(task)


def det_backward(task: Task, n: int) -> None:
    """`fused_backward.det`."""
    LU, swaps, mantissa = contiguous(task, 0), pivots(task, 1), numbers(task, 2)
    exponent, cotangent, result = integers(task, 3), numbers(task, 4), contiguous(task, 5)
    F, X = np.empty((n, n), LU.dtype), np.empty((n, n), LU.dtype)
    for i in single_matrices(task):
        multiple = cotangent[i, 0] * np.conj(mantissa[i, 0])
        _write_multiple(multiple, LU[i].T, swaps[i], result[i], F, X, n)
        if exponent[i, 0] != 0:
            multiply_by_power_of_two(result[i], exponent[i, 0])


def slogdet(task: Task, n: int) -> None:
    """`fused_forward.slogdet`."""
    A, sign, logarithm = matrices(task, 0), numbers(task, 1), reals(task, 2)
    LU, swaps = contiguous(task, 3), pivots(task, 4)
    scratch = _scratch(LU, n)
    for i in single_matrices(task):
        product, power, is_usual = _determinant(A[i], LU[i].T, swaps[i], scratch, n)
        if is_usual:
            sign[i, 0], logarithm[i, 0] = logarithm_of(product, power)
        else:
            report(task)


def slogdet_backward(task: Task, n: int) -> None:
    """`fused_backward.slogdet`."""
    LU, swaps = contiguous(task, 0), pivots(task, 1)
    cotangent, result = reals(task, 2), contiguous(task, 3)
    F, X = np.empty((n, n), LU.dtype), np.empty((n, n), LU.dtype)
    for i in single_matrices(task):
        multiple = LU.dtype.type(cotangent[i, 0])
        _write_multiple(multiple, LU[i].T, swaps[i], result[i], F, X, n)


def slogdet_backward_of_complex(task: Task, n: int) -> None:
    """`fused_backward.slogdet_of_complex`."""
    sign, LU, swaps = numbers(task, 0), contiguous(task, 1), pivots(task, 2)
    of_sign, of_log, result = numbers(task, 3), reals(task, 4), contiguous(task, 5)
    F, X = np.empty((n, n), LU.dtype), np.empty((n, n), LU.dtype)
    for i in single_matrices(task):
        turn = (of_sign[i, 0] * np.conj(sign[i, 0])).imag
        multiple = LU.dtype.type(complex(of_log[i, 0], turn))
        _write_multiple(multiple, LU[i].T, swaps[i], result[i], F, X, n)


@inlined
def _write_multiple(
    scale: complex, LU: Array, swaps: Array, result: Array, F: Array, X: Array, n: int
) -> None:
    """So many times A⁻ᴴ; the last two arrays are scratch."""
    copy_to(F, LU, n, n)
    write_inverse(F, swaps, X, n)
    for c in range(n):
        for r in range(n):
            result[c, r] = scale * np.conj(X[r, c])


@inlined
def _scratch(LU: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """What `_determinant` works in."""
    real = LU.real.dtype
    return (
        np.empty((n, n), LU.dtype),
        np.empty((2, n), real),
        np.empty(n, np.int64),
        np.empty((3, n), real),
    )


@inlined
def _determinant(
    A: Array, LU: Array, swaps: Array, scratch: tuple[Array, Array, Array, Array], n: int
) -> tuple[complex, int, bool]:
    """`fused_forward.inspected`, of what is not easy at first sight."""
    F, largest, order, of_inspection = scratch
    is_usual, product = _easy_determinant(A, LU, swaps, F, largest, n)
    power = 0
    if not is_usual:
        product, power, is_usual = inspected(A, LU, swaps, order, of_inspection)
    return product, power, is_usual


@inlined
def _easy_determinant(
    A: Array, LU: Array, swaps: Array, F: Array, largest: Array, n: int
) -> tuple[bool, complex]:
    """Write the factors of a matrix; whether it is easy, and its determinant then.

    Easy is what `inspection.is_hard` says not to be hard before it looks closer, with a determinant whose
    factors are all in range.
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
    small, product, negligible = np.sqrt(np.finfo(largest.dtype).eps), LU.dtype.type(1), 0
    far = 2.0 ** (1000 // n) if small < 1e-5 else 2.0 ** (120 // n)
    for c in range(n):
        pivot = modulus(F[c, c])
        negligible += pivot <= small * growth * largest[0, c]
        is_easy &= 1 / far < pivot and largest[0, c] < far and pivot < far
        product *= F[c, c] if swaps[c] == c + 1 else -F[c, c]
    is_easy &= negligible < 2 or clear_pivots(LU, 1.0) > n - 2
    return is_easy, product
