"""Linear algebra on a group of small matrices, the batch innermost.

Gathered into an array (rows, columns, lanes), the scalar recurrences of substitution and elimination
become the same vector instruction for all matrices of a group, however small they are. The four
substitutions are written out: with a function for the loop that they share, inlined or not, the
backward of `inv` of 16×16 takes 10 to 20 % longer. Products add up four terms at once, and take 10 to
30 % less than with a load and a store of the sum for each.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import Array, compiled

_TILE = 8
"""Matrices."""


@compiled
def gather(source: Array, start: int, lanes: int) -> Array:
    """A group of matrices, batch last; the last one repeated where the batch ends."""
    count, rows, columns = source.shape
    group = np.empty((rows, columns, lanes), source.dtype)
    here = min(lanes, count - start)
    present = source[start : start + here]
    for r in range(rows):
        for c in range(columns):
            entries, gathered = present[:, r, c], group[r, c]
            for lane in range(here):
                gathered[lane] = entries[lane]
            for lane in range(here, lanes):
                gathered[lane] = entries[here - 1]
    return group


@compiled
def side_by_side(left: Array, right: Array, start: int, lanes: int) -> Array:
    """A group of matrices [A B]."""
    A, B = gather(left, start, lanes), gather(right, start, lanes)
    m, n, _ = A.shape
    group = np.empty((m, n + B.shape[1], lanes), A.dtype)
    for r in range(m):
        for c in range(group.shape[1]):
            for lane in range(lanes):
                group[r, c, lane] = A[r, c, lane] if c < n else B[r, c - n, lane]
    return group


@compiled
def scatter(group: Array, target: Array, start: int) -> None:
    """Back to where `gather` takes a group from."""
    count, rows, columns = target.shape
    here = min(group.shape[2], count - start)
    # Of columns that lie one after the other a line of the cache is written in pieces: few at a time.
    tiled = here // _TILE * _TILE if target.strides[1] < target.strides[2] else 0
    for first in range(start, start + tiled, _TILE):
        for r in range(rows):
            for c in range(columns):
                for i in range(_TILE):
                    target[first + i, r, c] = group[r, c, first - start + i]
    for lane in range(tiled, here):
        for r in range(rows):
            for c in range(columns):
                target[start + lane, r, c] = group[r, c, lane]


@compiled
def scatter_rows(group: Array, order: Array, target: Array, start: int) -> None:
    """Row i of each result is row `order[i]` of its matrix."""
    count, rows, columns = target.shape
    lanes = group.shape[2]
    for lane in range(min(lanes, count - start)):
        for r in range(rows):
            row, permuted = group[order[start + lane, r], :, lane], target[start + lane, r]
            for c in range(columns):
                permuted[c] = row[c]


@compiled
def solve_upper(U: Array, Y: Array) -> None:
    """Y ← U⁻¹ Y."""
    n, columns, lanes = Y.shape
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            for lane in range(lanes):
                Y[i, c, lane] /= U[i, i, lane]
        for r in range(i):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= U[r, i, lane] * Y[i, c, lane]


@compiled
def solve_upper_adjoint(U: Array, Y: Array) -> None:
    """Y ← U⁻ᴴ Y."""
    n, columns, lanes = Y.shape
    for i in range(n):
        for c in range(columns):
            for lane in range(lanes):
                Y[i, c, lane] /= np.conj(U[i, i, lane])
        for r in range(i + 1, n):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= np.conj(U[i, r, lane]) * Y[i, c, lane]


@compiled
def solve_unit_lower(L: Array, Y: Array) -> None:
    """Y ← L⁻¹ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n):
        for r in range(i + 1, n):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= L[r, i, lane] * Y[i, c, lane]


@compiled
def solve_unit_lower_adjoint(L: Array, Y: Array) -> None:
    """Y ← L⁻ᴴ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n - 1, -1, -1):
        for r in range(i):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= np.conj(L[i, r, lane]) * Y[i, c, lane]


@compiled
def swap(group: Array, swaps: Array, start: int, adjoint: bool) -> None:
    """Y ← P Y, or Pᵀ Y: the row swaps of LAPACK pivots, from the last one or from the first."""
    count, n = swaps.shape
    _, columns, lanes = group.shape
    for lane in range(lanes):
        of_matrix = swaps[min(start + lane, count - 1)]
        for step in range(n):
            i = step if adjoint else n - 1 - step
            j = of_matrix[i] - 1
            if j != i:
                for c in range(columns):
                    group[i, c, lane], group[j, c, lane] = group[j, c, lane], group[i, c, lane]


@compiled
def swap_columns(group: Array, swaps: Array, start: int) -> None:
    """Y ← Y Pᵀ, of LAPACK pivots."""
    count, n = swaps.shape
    rows, _, lanes = group.shape
    for lane in range(lanes):
        of_matrix = swaps[min(start + lane, count - 1)]
        for i in range(n - 1, -1, -1):
            j = of_matrix[i] - 1
            if j != i:
                for r in range(rows):
                    group[r, i, lane], group[r, j, lane] = group[r, j, lane], group[r, i, lane]


@compiled
def add_product(out: Array, sign: int, X: Array, Y: Array) -> None:
    """Out ← out + sign · X Y."""
    rows, inner, lanes = X.shape
    columns, fours = Y.shape[1], inner // 4 * 4
    for r in range(rows):
        for i in range(0, fours, 4):
            for c in range(columns):
                for lane in range(lanes):
                    entry = X[r, i, lane] * Y[i, c, lane] + X[r, i + 1, lane] * Y[i + 1, c, lane]
                    entry += X[r, i + 2, lane] * Y[i + 2, c, lane]
                    entry += X[r, i + 3, lane] * Y[i + 3, c, lane]
                    out[r, c, lane] += sign * entry
        for i in range(fours, inner):
            for c in range(columns):
                for lane in range(lanes):
                    out[r, c, lane] += sign * X[r, i, lane] * Y[i, c, lane]


@compiled
def add_adjoint_product(out: Array, X: Array, Y: Array) -> None:
    """Out ← out + Xᴴ Y."""
    inner, rows, lanes = X.shape
    columns, fours = Y.shape[1], inner // 4 * 4
    for i in range(0, fours, 4):
        for r in range(rows):
            for c in range(columns):
                for lane in range(lanes):
                    entry = np.conj(X[i, r, lane]) * Y[i, c, lane]
                    entry += np.conj(X[i + 1, r, lane]) * Y[i + 1, c, lane]
                    entry += np.conj(X[i + 2, r, lane]) * Y[i + 2, c, lane]
                    entry += np.conj(X[i + 3, r, lane]) * Y[i + 3, c, lane]
                    out[r, c, lane] += entry
    for i in range(fours, inner):
        for r in range(rows):
            for c in range(columns):
                for lane in range(lanes):
                    out[r, c, lane] += np.conj(X[i, r, lane]) * Y[i, c, lane]


@compiled
def adjoint(X: Array) -> Array:
    """Xᴴ, a copy."""
    rows, columns, lanes = X.shape
    result = np.empty((columns, rows, lanes), X.dtype)
    for r in range(rows):
        for c in range(columns):
            for lane in range(lanes):
                result[c, r, lane] = np.conj(X[r, c, lane])
    return result


@compiled
def zeros(rows: int, columns: int, like: Array) -> Array:
    """A group of zero matrices, as many as in another."""
    return np.zeros((rows, columns, like.shape[2]), like.dtype)


@compiled
def identity(n: int, like: Array) -> Array:
    """A group of identities, as many as in another."""
    group = zeros(n, n, like)
    for i in range(n):
        for lane in range(like.shape[2]):
            group[i, i, lane] = 1
    return group
