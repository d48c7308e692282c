"""The gradients of least squares with few right-hand sides, a row of the matrix at a time."""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    group_size,
    groups,
    reordered,
    rows,
    single_matrices,
)


def gram_by_rows(task: Task) -> None:
    """The summands of AᴴA w, one for each so many rows of A, in one pass over them.

    All rows of all A lie one after the other, the columns of all w are rows, and so are the summands.
    """
    A, columns, summands = rows(task, 0), rows(task, 1), rows(task, 2)
    for part in single_matrices(task):
        add_gram(A, columns, summands, part)


@reordered
def add_gram(A: Array, columns: Array, summands: Array, part: int) -> None:
    """Write one of the summands of `gram_by_rows`."""
    n = A.shape[1]
    k = summands.shape[1] // n
    matrices = len(columns) // k
    height, parts = len(A) // matrices, len(summands) // matrices
    share = -(-height // parts)
    matrix, start = part // parts, part % parts * share
    summands[part] = 0
    zero = A.dtype.type(0)
    for row in range(matrix * height + start, matrix * height + min(start + share, height)):
        for q in range(k):
            along = zero
            for c in range(n):
                along += A[row, c] * columns[matrix * k + q, c]
            for c in range(n):
                summands[part, q * n + c] += np.conj(A[row, c]) * along


def lstsq_by_rows(task: Task) -> None:
    """Z = A w and Ā = −Z Xᴴ + (B − A X) wᴴ of tall A, each row read once and written once.

    All rows of all A, B, Z and Ā lie one after the other. The columns of w and of X are rows here:
    k of w, then k of X, for each matrix.
    """
    A, B, columns = rows(task, 0), rows(task, 1), rows(task, 2)
    gradient, Z = rows(task, 3), rows(task, 4)
    for start in groups(task):
        write_rows(A, B, columns, Z, gradient, start, min(start + group_size(task), len(A)))


@reordered
def write_rows(
    A: Array, B: Array, columns: Array, Z: Array, gradient: Array, start: int, stop: int
) -> None:
    """Some rows of what `lstsq_by_rows` writes."""
    n, k = A.shape[1], B.shape[1]
    height = len(A) // (len(columns) // (2 * k))
    zero = A.dtype.type(0)
    for row in range(start, stop):
        first = row // height * 2 * k
        for q in range(k):
            w, x = first + q, first + k + q
            along = fitted = zero
            for c in range(n):
                along += A[row, c] * columns[w, c]
                fitted += A[row, c] * columns[x, c]
            Z[row, q] = along
            residual = B[row, q] - fitted
            for c in range(n):
                before = gradient[row, c] if q > 0 else zero
                change = residual * np.conj(columns[w, c]) - along * np.conj(columns[x, c])
                gradient[row, c] = before + change
