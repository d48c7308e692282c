"""The backward of small matrices, a group of them at a time with the batch innermost.

A whole backward reads its inputs once and writes its result once. Inputs may have any strides.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Task,
    group_size,
    groups,
    integers,
    matrices,
    pivots,
)
from strategies.kernels.cpu.loops.grouped import (
    add_product,
    adjoint,
    gather,
    identity,
    scatter,
    scatter_rows,
    solve_unit_lower,
    solve_unit_lower_adjoint,
    solve_upper,
    solve_upper_adjoint,
    swap,
    zeros,
)


def lu(task: Task) -> None:
    """The reverse in `blocked_lu` with blocks of one column."""
    LU, cotangent, result = matrices(task, 0), matrices(task, 2), matrices(task, 3)
    inverse_order = integers(task, 1)
    _, m, n = LU.shape
    lanes = group_size(task)
    for start in groups(task):
        F, S = gather(LU, start, lanes), gather(cotangent, start, lanes)
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
        scatter_rows(S, inverse_order, result, start)


def solve(task: Task) -> None:
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    LU, swaps, solution = matrices(task, 0), pivots(task, 1), matrices(task, 2)
    cotangent, result, rhs_result = matrices(task, 3), matrices(task, 4), matrices(task, 5)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F, Y = gather(LU, start, lanes), gather(cotangent, start, lanes)
        solve_upper_adjoint(F, Y)
        solve_unit_lower_adjoint(F, Y)
        swap(Y, swaps, start, False)
        scatter(Y, rhs_result, start)
        gradient = zeros(n, n, F)
        add_product(gradient, -1, Y, adjoint(gather(solution, start, lanes)))
        scatter(gradient, result, start)


def inv(task: Task) -> None:
    """Ā = −A⁻ᴴ G A⁻ᴴ, from A = P L U."""
    LU, swaps = matrices(task, 0), pivots(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    lanes = group_size(task)
    for start in groups(task):
        F, Y = gather(LU, start, lanes), gather(cotangent, start, lanes)
        solve_upper_adjoint(F, Y)
        solve_unit_lower_adjoint(F, Y)
        swap(Y, swaps, start, False)
        Y = adjoint(Y)
        swap(Y, swaps, start, True)
        solve_unit_lower(F, Y)
        solve_upper(F, Y)
        scatter(-adjoint(Y), result, start)


def det(task: Task) -> None:
    """A number for each matrix times A⁻ᴴ = P L⁻ᴴ U⁻ᴴ, from PᵀA = L U."""
    LU, inverse_order = matrices(task, 0), integers(task, 1)
    scale, result = matrices(task, 2), matrices(task, 3)
    n = LU.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F = gather(LU, start, lanes)
        Y = zeros(n, n, F)
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
        solve_unit_lower_adjoint(F, Y)
        of_group = gather(scale, start, lanes)
        for r in range(n):
            for c in range(n):
                for lane in range(lanes):
                    Y[r, c, lane] *= of_group[0, 0, lane]
        scatter_rows(Y, inverse_order, result, start)


def pinv(task: Task) -> None:
    """The formula of `strategies.formulas.pinv` at full column rank, A = Q R."""
    Q, R = matrices(task, 0), matrices(task, 1)
    cotangent, result = matrices(task, 2), matrices(task, 3)
    n = R.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        basis, F = gather(Q, start, lanes), gather(R, start, lanes)
        W = adjoint(gather(cotangent, start, lanes))
        in_range = zeros(n, n, F)
        add_product(in_range, 1, adjoint(basis), W)
        gram = identity(n, F)
        solve_upper_adjoint(F, gram)
        solve_upper(F, gram)
        K = in_range.copy()
        solve_upper(F, K)
        along = -adjoint(K)
        solve_upper_adjoint(F, along)
        add_product(along, -1, in_range, gram)
        gradient = zeros(basis.shape[0], n, F)
        add_product(gradient, 1, W, gram)
        add_product(gradient, 1, basis, along)
        scatter(gradient, result, start)


def lstsq(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` for tall A = Q R of full rank."""
    R, matrix, rhs = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    solution, cotangent = matrices(task, 3), matrices(task, 4)
    result, rhs_result = matrices(task, 5), matrices(task, 6)
    m, n = matrix.shape[1:]
    k = rhs.shape[2]
    lanes = group_size(task)
    for start in groups(task):
        F, A = gather(R, start, lanes), gather(matrix, start, lanes)
        X, G = gather(solution, start, lanes), gather(cotangent, start, lanes)
        w, Z = G.copy(), zeros(m, k, F)
        solve_upper_adjoint(F, w)
        solve_upper(F, w)
        add_product(Z, 1, A, w)
        # Corrected once, as in `strategies.factors.Reflected`.
        add_product(G, -1, adjoint(A), Z)
        solve_upper_adjoint(F, G)
        solve_upper(F, G)
        add_product(Z, 1, A, G)
        w += G
        scatter(Z, rhs_result, start)
        residual = gather(rhs, start, lanes)
        add_product(residual, -1, A, X)
        gradient = zeros(m, n, F)
        add_product(gradient, -1, Z, adjoint(X))
        add_product(gradient, 1, residual, adjoint(w))
        scatter(gradient, result, start)
