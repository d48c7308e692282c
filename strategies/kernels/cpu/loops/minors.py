"""Determinants of up to three rows, and their gradients by minors, which singular matrices have, too.

A minor is a sum of two products of entries, each of another column and row: its roundoff is what
perturbations of the entries by roundoff would do. Of larger minors that does not hold, nor of the
determinant as a sum of six products, which is therefore the product of pivots.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    matrices,
    numbers,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import copy_to, empty
from strategies.kernels.cpu.loops.inspection import determinant_of
from strategies.kernels.cpu.loops.small import eliminate_small


def det(task: Task) -> None:
    """Det A; reports one out of range, or with entries of which products may be."""
    A, result = matrices(task, 0), numbers(task, 1)
    n = A.shape[1]
    F, swaps = empty(n, n, A), np.empty(n, np.int32)
    for i in single_matrices(task):
        copy_to(F, A[i])
        if not _are_in_range(F):
            report(task)
            continue
        result[i, 0] = 0
        if eliminate_small(F, swaps):
            result[i, 0], exponent = determinant_of(F, swaps)
            least = 2.0**-900 if np.finfo(F.real.dtype).eps < 1e-10 else 2.0**-100
            if exponent != 0 or not abs(result[i, 0]) > least:
                report(task)


@compiled
def _are_in_range(F: Array) -> bool:
    """Whether the products of elimination neither overflow nor underflow."""
    least, most = 2.0**-40, 2.0**20
    if np.finfo(F.real.dtype).eps < 1e-10:
        least, most = 2.0**-250, 2.0**165
    for row in F:
        for entry in row:
            size = abs(entry.real) + abs(entry.imag)
            if size != 0 and not least < size < most:
                return False
    return True


def det_backward(task: Task) -> None:
    """Ā = ḡ conj(C) with C, the cofactors, which are signed minors."""
    A, cotangent, result = matrices(task, 0), numbers(task, 1), contiguous(task, 2)
    for i in single_matrices(task):
        _write_cofactors(A[i], result[i])
        for row in result[i]:
            for j in range(len(row)):
                row[j] = cotangent[i, 0] * np.conj(row[j])


@compiled
def _write_cofactors(A: Array, C: Array) -> None:
    n = len(A)
    if n == 1:
        C[0, 0] = 1
    elif n == 2:
        C[0, 0], C[0, 1] = A[1, 1], -A[1, 0]
        C[1, 0], C[1, 1] = -A[0, 1], A[0, 0]
    else:
        for i in range(3):
            # With rows and columns in cyclic order there are no signs.
            first, second = (i + 1) % 3, (i + 2) % 3
            for j in range(3):
                left, right = (j + 1) % 3, (j + 2) % 3
                C[i, j] = A[first, left] * A[second, right] - A[first, right] * A[second, left]
