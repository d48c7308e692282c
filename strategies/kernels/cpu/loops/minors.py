"""Determinants of up to three rows, and their gradients by minors, which singular matrices have, too.

A minor is a sum of two products of entries, each of another column and row: its roundoff is what
perturbations of the entries by roundoff would do. Of larger minors that does not hold, nor of the
determinant as a sum of six products, which is therefore the product of pivots.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops import tiny
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    inlined,
    matrices,
    numbers,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.small import modulus


def det(task: Task, n: int) -> None:
    """Det A; reports one out of range, or with entries of which products may be."""
    A, result = matrices(task, 0), numbers(task, 1)
    F, swaps = np.empty((n, n), A.dtype), np.empty(n, np.int32)
    least = 2.0**-900 if np.finfo(A.real.dtype).eps < 1e-10 else 2.0**-100
    for i in single_matrices(task):
        tiny.copy_to(F, A[i], n, n)
        if not _are_in_range(F):
            report(task)
            continue
        product = A.dtype.type(0)
        if tiny.eliminate(F, swaps, n):
            product = A.dtype.type(1)
            for k in range(n):
                product *= F[k, k] if swaps[k] == k + 1 else -F[k, k]
            if not abs(product) > least:
                report(task)
        result[i, 0] = product


@compiled
def _are_in_range(F: Array) -> bool:
    """Whether the products of elimination neither overflow nor underflow."""
    least, most = 2.0**-40, 2.0**20
    if np.finfo(F.real.dtype).eps < 1e-10:
        least, most = 2.0**-250, 2.0**165
    for row in F:
        for entry in row:
            size = modulus(entry)
            if size != 0 and not least < size < most:
                return False
    return True


def det_backward(task: Task, n: int) -> None:
    """Ā = ḡ conj(C) with C, the cofactors, which are signed minors."""
    A, cotangent, result = matrices(task, 0), numbers(task, 1), contiguous(task, 2)
    C = np.empty((n, n), A.dtype)
    for i in single_matrices(task):
        _write_cofactors(A[i], C, n)
        for r in range(n):
            for c in range(n):
                result[i, r, c] = cotangent[i, 0] * np.conj(C[r, c])


@inlined
def _write_cofactors(A: Array, C: Array, n: int) -> None:
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
