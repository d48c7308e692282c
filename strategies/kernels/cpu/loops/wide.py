"""Least squares of small wide matrices whose rank is full beyond doubt, from a QR of the adjoint.

Aᴴ = Q R, so A⁺ = Q R⁻ᴴ and AAᴴ = RᴴR. Each loop goes from matrix to matrix, and reports one that is not
a usual case.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    form_basis,
    reflect,
    solve_upper,
    solve_upper_adjoint,
    subtract_adjoint_times_transpose,
    subtract_product,
    write_adjoint_product,
    write_adjoint_times_transpose,
    write_product,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    integers,
    matrices,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import (
    by_columns,
    conjugate,
    copy_to,
    empty,
    moderate_columns,
    moderate_squares,
    multiply,
    normalize,
)
from strategies.kernels.cpu.loops.fused_forward import is_clear_triangle


def lstsq(task: Task) -> None:
    """X = A⁺B, row after row, and the rank; Q and R by columns."""
    A, B, X, rank = matrices(task, 0), matrices(task, 1), contiguous(task, 2), integers(task, 3)
    Q, R = contiguous(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        if not _lstsq(A[i], B[i], X[i], Q[i].T, R[i].T):
            report(task)
        rank[i, 0] = A.shape[1]


@compiled
def _lstsq(A: Array, B: Array, X: Array, Q: Array, R: Array) -> bool:
    copy_to(Q, A.T)
    conjugate(Q)
    squares = moderate_squares(Q)
    Y, of_B = moderate_columns(B)
    if squares < 0 or of_B < 0:
        return False
    n, m = Q.shape
    scales, scratch = np.empty(m, Q.dtype), np.empty(64 * m, Q.dtype)
    reflect(Q, scales, scratch)
    if not is_clear_triangle(R, Q, squares):
        return False
    form_basis(Q, scales, scratch)
    solve_upper_adjoint(R, Y)
    solution = empty(n, B.shape[1], Q)
    write_product(solution, Q, Y)
    copy_to(X, solution)
    return True


def lstsq_backward(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` at full row rank; gradients are written by rows."""
    B, X, Q, R = matrices(task, 0), contiguous(task, 1), contiguous(task, 2), contiguous(task, 3)
    G, result, rhs_result = matrices(task, 4), contiguous(task, 5), contiguous(task, 6)
    for i in single_matrices(task):
        if not _lstsq_backward(B[i], X[i], Q[i].T, R[i].T, G[i], result[i].T, rhs_result[i]):
            report(task)


@compiled
def _lstsq_backward(
    B: Array, X: Array, Q: Array, R: Array, G: Array, result: Array, rhs_result: Array
) -> bool:
    """The transpose of Ā = Y Nᴴ − Z Xᴴ is written, and B̄ = Z.

    Z = R⁻¹QᴴG, N = G − Q QᴴG, and Y = A⁺ᴴX = (RᴴR)⁻¹B.
    """
    N = by_columns(G)
    power = normalize(N)
    if power == 0:
        return False
    Z, Y = empty(*B.shape, B), by_columns(B)
    write_adjoint_product(Z, Q, N)
    subtract_product(N, Q, Z)
    solve_upper(R, Z)
    copy_to(rhs_result, Z)
    solve_upper_adjoint(R, Y)
    solve_upper(R, Y)
    write_adjoint_times_transpose(result, by_columns(N.T), Y)
    subtract_adjoint_times_transpose(result, X.T, Z)
    multiply(rhs_result, power)
    multiply(result, power)
    return True
