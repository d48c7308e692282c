"""The backward of small matrices, a group of them at a time with the batch innermost.

Gathered into an array (rows, columns, lanes), the scalar recurrences of substitution and elimination
become the same vector instruction for all matrices of a group, however small they are, and a whole
backward reads its inputs once and writes its result once. Each kernel goes over a batch of whatever
strides and length, described by a task; `strategies.lanes.threads` compiles it. The four substitutions
are written out: with the loop that they share in a function, inlined or not, `inv` of 16×16 takes a
tenth to a fifth longer.

In one file, because the compiler's cache looks for changes in the file of the kernel only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from strategies.lanes.task import compiled, group_size, groups, integers, matrices, pivots

__all__ = ["inv", "inverse_adjoint", "lstsq", "lu", "pinv", "solve"]

Array = Any  # NumPy arrays of whatever the kernel is compiled for
Task = Any  # see `strategies.lanes.task`


@compiled
def _gather(source: Array, start: int, lanes: int) -> Array:
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
def _scatter(group: Array, target: Array, start: int) -> None:
    count, rows, columns = target.shape
    lanes = group.shape[2]
    for lane in range(min(lanes, count - start)):
        for r in range(rows):
            for c in range(columns):
                target[start + lane, r, c] = group[r, c, lane]


@compiled
def _scatter_rows(group: Array, order: Array, target: Array, start: int) -> None:
    """Row i of each result is row `order[i]` of its matrix."""
    count, rows, columns = target.shape
    lanes = group.shape[2]
    for lane in range(min(lanes, count - start)):
        for r in range(rows):
            row, permuted = group[order[start + lane, r], :, lane], target[start + lane, r]
            for c in range(columns):
                permuted[c] = row[c]


@compiled
def _solve_upper(U: Array, Y: Array) -> None:
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
def _solve_upper_adjoint(U: Array, Y: Array) -> None:
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
def _solve_unit_lower(L: Array, Y: Array) -> None:
    """Y ← L⁻¹ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n):
        for r in range(i + 1, n):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= L[r, i, lane] * Y[i, c, lane]


@compiled
def _solve_unit_lower_adjoint(L: Array, Y: Array) -> None:
    """Y ← L⁻ᴴ Y; the diagonal of L is not read."""
    n, columns, lanes = Y.shape
    for i in range(n - 1, -1, -1):
        for r in range(i):
            for c in range(columns):
                for lane in range(lanes):
                    Y[r, c, lane] -= np.conj(L[i, r, lane]) * Y[i, c, lane]


@compiled
def _swap(group: Array, swaps: Array, start: int, adjoint: bool) -> None:
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
def _add_product(out: Array, sign: int, X: Array, Y: Array) -> None:
    """Out ← out + sign · X Y."""
    rows, inner, lanes = X.shape
    columns = Y.shape[1]
    for r in range(rows):
        for i in range(inner):
            for c in range(columns):
                for lane in range(lanes):
                    out[r, c, lane] += sign * X[r, i, lane] * Y[i, c, lane]


@compiled
def _adjoint(X: Array) -> Array:
    rows, columns, lanes = X.shape
    result = np.empty((columns, rows, lanes), X.dtype)
    for r in range(rows):
        for c in range(columns):
            for lane in range(lanes):
                result[c, r, lane] = np.conj(X[r, c, lane])
    return result


@compiled
def _zeros(rows: int, columns: int, like: Array) -> Array:
    return np.zeros((rows, columns, like.shape[2]), like.dtype)


@compiled
def _identity(n: int, like: Array) -> Array:
    group = _zeros(n, n, like)
    for i in range(n):
        for lane in range(like.shape[2]):
            group[i, i, lane] = 1
    return group


def lu(task: Task) -> None:
    """The reverse in `blocked_lu` with blocks of one column."""
    LU, cotangent, result = matrices(task, 0), matrices(task, 2), matrices(task, 3)
    inverse_order = integers(task, 1)
    _, m, n = LU.shape
    lanes = group_size(task)
    for start in groups(task):
        F, S = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        for j in range(min(m, n) - 1, -1, -1):
            for r in range(j + 1, m):
                for c in range(j + 1, n):
                    for lane in range(lanes):
                        S[r, j, lane] -= S[r, c, lane] * np.conj(F[j, c, lane])
                        S[j, c, lane] -= np.conj(F[r, j, lane]) * S[r, c, lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    S[r, j, lane] /= np.conj(F[j, j, lane])
                    S[j, j, lane] -= np.conj(F[r, j, lane]) * S[r, j, lane]
        _scatter_rows(S, inverse_order, result, start)


def solve(task: Task) -> None:
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    LU, swaps, solution = matrices(task, 0), pivots(task, 1), matrices(task, 2)
    cotangent, rhs_result, result = matrices(task, 3), matrices(task, 4), matrices(task, 5)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F, Y = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        _solve_upper_adjoint(F, Y)
        _solve_unit_lower_adjoint(F, Y)
        _swap(Y, swaps, start, False)
        _scatter(Y, rhs_result, start)
        gradient = _zeros(n, n, F)
        _add_product(gradient, -1, Y, _adjoint(_gather(solution, start, lanes)))
        _scatter(gradient, result, start)


def inv(task: Task) -> None:
    """Ā = −A⁻ᴴ G A⁻ᴴ, from A = P L U."""
    LU, swaps = matrices(task, 0), pivots(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    lanes = group_size(task)
    for start in groups(task):
        F, Y = _gather(LU, start, lanes), _gather(cotangent, start, lanes)
        _solve_upper_adjoint(F, Y)
        _solve_unit_lower_adjoint(F, Y)
        _swap(Y, swaps, start, False)
        Y = _adjoint(Y)
        _swap(Y, swaps, start, True)
        _solve_unit_lower(F, Y)
        _solve_upper(F, Y)
        _scatter(-_adjoint(Y), result, start)


def inverse_adjoint(task: Task) -> None:
    """A number times A⁻ᴴ = P L⁻ᴴ U⁻ᴴ, from PᵀA = L U."""
    LU, inverse_order = matrices(task, 0), integers(task, 1)
    scale, result = matrices(task, 2), matrices(task, 3)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F = _gather(LU, start, lanes)
        Y = _zeros(n, n, F)
        # U⁻ᴴ, row by row: it is lower triangular.
        for i in range(n):
            for lane in range(lanes):
                Y[i, i, lane] = 1
            for r in range(i):
                for c in range(r + 1):
                    for lane in range(lanes):
                        Y[i, c, lane] -= np.conj(F[r, i, lane]) * Y[r, c, lane]
            for c in range(i + 1):
                for lane in range(lanes):
                    Y[i, c, lane] /= np.conj(F[i, i, lane])
        _solve_unit_lower_adjoint(F, Y)
        of_group = _gather(scale, start, lanes)
        for r in range(n):
            for c in range(n):
                for lane in range(lanes):
                    Y[r, c, lane] *= of_group[0, 0, lane]
        _scatter_rows(Y, inverse_order, result, start)


def pinv(task: Task) -> None:
    """The formula of `strategies.formulas.pinv` at full column rank, A = Q R."""
    Q, R = matrices(task, 0), matrices(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    n = R.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        basis, F = _gather(Q, start, lanes), _gather(R, start, lanes)
        W = _adjoint(_gather(cotangent, start, lanes))
        in_range = _zeros(n, n, F)
        _add_product(in_range, 1, _adjoint(basis), W)
        gram = _identity(n, F)
        _solve_upper_adjoint(F, gram)
        _solve_upper(F, gram)
        K = in_range.copy()
        _solve_upper(F, K)
        along = -_adjoint(K)
        _solve_upper_adjoint(F, along)
        _add_product(along, -1, in_range, gram)
        gradient = _zeros(basis.shape[0], n, F)
        _add_product(gradient, 1, W, gram)
        _add_product(gradient, 1, basis, along)
        _scatter(gradient, result, start)


def lstsq(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` for tall A = Q R of full rank."""
    R, matrix, rhs = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    solution, cotangent = matrices(task, 3), matrices(task, 4)
    rhs_result, result = matrices(task, 5), matrices(task, 6)
    m, n = matrix.shape[1:]
    k = rhs.shape[2]
    lanes = group_size(task)
    for start in groups(task):
        F, A = _gather(R, start, lanes), _gather(matrix, start, lanes)
        X, G = _gather(solution, start, lanes), _gather(cotangent, start, lanes)
        w, Z = G.copy(), _zeros(m, k, F)
        _solve_upper_adjoint(F, w)
        _solve_upper(F, w)
        _add_product(Z, 1, A, w)
        # Corrected once, as in `strategies.factors.Reflected`.
        _add_product(G, -1, _adjoint(A), Z)
        _solve_upper_adjoint(F, G)
        _solve_upper(F, G)
        _add_product(Z, 1, A, G)
        w += G
        _scatter(Z, rhs_result, start)
        residual = _gather(rhs, start, lanes)
        _add_product(residual, -1, A, X)
        gradient = _zeros(m, n, F)
        _add_product(gradient, -1, Z, _adjoint(X))
        _add_product(gradient, 1, residual, _adjoint(w))
        _scatter(gradient, result, start)
