"""The backward of one small matrix from what `fused_forward` left: products and substitutions.

Each loop reports a cotangent whose norm is far from one, and writes nothing then that is read.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    add_adjoint_product,
    add_adjoint_times_transpose,
    add_product,
    add_transposed_product,
    solve_adjoint_with,
    solve_upper,
    solve_upper_adjoint,
    solve_with,
    subtract_adjoint_product,
    subtract_adjoint_times_transpose,
    subtract_product,
    subtract_product_with_adjoint,
)
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    integers,
    matrices,
    numbers,
    pivots,
    reals,
    report,
)
from strategies.kernels.cpu.loops.columns import (
    by_columns,
    copy_to,
    fill_with_identity,
    moderate_columns,
    moderate_squares,
    zeros,
)
from strategies.kernels.cpu.loops.elimination import permute_columns, reverse, scratch_of_blocks


def inv(task: Task) -> None:
    """Ā = −A⁻ᴴ G A⁻ᴴ, by the inverse itself."""
    X, G, result = contiguous(task, 0)[0].T, matrices(task, 1)[0].T, contiguous(task, 2)[0].T
    # Transposed: Āᵀ = −conj(X) Gᵀ conj(X), and what is here called X is its transpose.
    W, squares = moderate_columns(G)
    if squares < 0:
        report(task)
        return
    half = zeros(len(X), len(X), X)
    add_adjoint_product(half, X, W)
    result[:] = 0
    subtract_product_with_adjoint(result, half, X)


def solve(task: Task) -> None:
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    X, LU, swaps = contiguous(task, 0)[0].T, contiguous(task, 1)[0].T, pivots(task, 2)[0]
    G, result, rhs_result = matrices(task, 3)[0], contiguous(task, 4)[0].T, contiguous(task, 5)[0]
    Y, squares = moderate_columns(G)
    if squares < 0:
        report(task)
        return
    solve_adjoint_with(LU, swaps, Y)
    copy_to(rhs_result, Y)
    result[:] = 0
    subtract_adjoint_times_transpose(result, X, Y)


def lu_factor(task: Task) -> None:
    """The reverse in `elimination`."""
    LU, order = contiguous(task, 0)[0].T, integers(task, 1)[0]
    G, result = matrices(task, 2)[0], contiguous(task, 3)[0]
    copy_to(result, G)
    if not _reverse(LU, order, result.T):
        report(task)


def lu(task: Task) -> None:
    """The same of the cotangents of L and U: P is constant."""
    LU, order = contiguous(task, 0)[0].T, integers(task, 1)[0]
    of_L, of_U, result = matrices(task, 2)[0], matrices(task, 3)[0], contiguous(task, 4)[0]
    m, n = result.shape
    for i in range(m):
        for j in range(n):
            result[i, j] = of_L[i, j] if j < i else of_U[i, j]
    if not _reverse(LU, order, result.T):
        report(task)


@compiled
def _reverse(LU: Array, order: Array, T: Array) -> bool:
    """Overwrite the transposed cotangent by the transposed gradient, if its norm is moderate."""
    if moderate_squares(T) < 0:
        return False
    reverse(np.conj(LU), T, scratch_of_blocks(LU))
    permute_columns(T, order)
    return True


def det(task: Task) -> None:
    """Ā = ḡ conj(det A) A⁻ᴴ."""
    LU, swaps, mantissa = contiguous(task, 0)[0].T, pivots(task, 1)[0], numbers(task, 2)[0]
    exponent, cotangent = integers(task, 3)[0], numbers(task, 4)[0]
    result = contiguous(task, 5)[0].T
    _multiple_of_inverse_adjoint(cotangent[0] * np.conj(mantissa[0]), LU, swaps, result)
    if exponent[0] != 0:
        half = 2.0 ** (exponent[0] / 2)
        for j in range(len(LU)):
            for i in range(len(LU)):
                result[i, j] = result[i, j] * half * half


def slogdet(task: Task) -> None:
    """Ā = ḡ A⁻ᴴ of real A, whose sign is constant."""
    LU, swaps = contiguous(task, 0)[0].T, pivots(task, 1)[0]
    cotangent, result = reals(task, 2)[0], contiguous(task, 3)[0].T
    _multiple_of_inverse_adjoint(LU.dtype.type(cotangent[0]), LU, swaps, result)


def slogdet_of_complex(task: Task) -> None:
    """Ā = (ḡ + i Im(s̄ conj(s))) A⁻ᴴ, s being the sign."""
    sign, LU, swaps = numbers(task, 0)[0], contiguous(task, 1)[0].T, pivots(task, 2)[0]
    of_sign, of_log = numbers(task, 3)[0], reals(task, 4)[0]
    result = contiguous(task, 5)[0].T
    turn = (of_sign[0] * np.conj(sign[0])).imag
    _multiple_of_inverse_adjoint(LU.dtype.type(complex(of_log[0], turn)), LU, swaps, result)


@compiled
def _multiple_of_inverse_adjoint(scale: complex, LU: Array, swaps: Array, result: Array) -> None:
    """Write the transpose of A⁻ᴴ, which is the conjugate of A⁻¹."""
    fill_with_identity(result, 1)
    solve_with(LU, swaps, result)
    for j in range(len(result)):
        for i in range(len(result)):
            result[i, j] = scale * np.conj(result[i, j])


def pinv(task: Task) -> None:
    """The formula of `strategies.formulas.pinv` at full column rank, A = Q R."""
    Q, R = contiguous(task, 0)[0].T, contiguous(task, 1)[0].T
    G, result = matrices(task, 2)[0], contiguous(task, 3)[0].T
    m, n = Q.shape
    W, squares = moderate_columns(G.T)
    if squares < 0:
        report(task)
        return
    for j in range(n):
        for i in range(m):
            W[i, j] = np.conj(W[i, j])
    in_range, gram = zeros(n, n, R), zeros(n, n, R)
    add_adjoint_product(in_range, Q, W)
    fill_with_identity(gram, 1)
    solve_upper_adjoint(R, gram)
    solve_upper(R, gram)
    K = in_range.T.copy().T
    solve_upper(R, K)
    along = zeros(n, n, R)
    for j in range(n):
        for i in range(n):
            along[i, j] = -np.conj(K[j, i])
    solve_upper_adjoint(R, along)
    subtract_product(along, in_range, gram)
    result[:] = 0
    add_transposed_product(result, gram, W)
    add_transposed_product(result, along, Q)


def lstsq(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` for tall A = Q R of full rank."""
    A, B, X = matrices(task, 0)[0], matrices(task, 1)[0], contiguous(task, 2)[0]
    R, G = contiguous(task, 3)[0].T, matrices(task, 4)[0]
    result, rhs_result = contiguous(task, 5)[0].T, contiguous(task, 6)[0]
    w, squares = moderate_columns(G)
    if squares < 0:
        report(task)
        return
    F, residual = by_columns(A), by_columns(B)
    rest, Z = by_columns(w), zeros(len(B), B.shape[1], B)
    _apply_gram(R, w)
    add_product(Z, F, w)
    # Corrected once, as in `strategies.factors.Reflected`.
    subtract_adjoint_product(rest, F, Z)
    _apply_gram(R, rest)
    add_product(Z, F, rest)
    for j in range(w.shape[1]):
        for i in range(len(w)):
            w[i, j] += rest[i, j]
    copy_to(rhs_result, Z)
    subtract_product(residual, F, by_columns(X))
    # Transposed: Āᵀ = conj(w) rᵀ − conj(X) Zᵀ.
    result[:] = 0
    add_adjoint_times_transpose(result, by_columns(w.T), residual)
    subtract_adjoint_times_transpose(result, X.T, Z)


@compiled
def _apply_gram(R: Array, x: Array) -> None:
    """X ← (AᴴA)⁻¹ x."""
    solve_upper_adjoint(R, x)
    solve_upper(R, x)
