"""The backward of small matrices from what `fused_forward` left: products and substitutions.

Each loop goes from matrix to matrix, and reports a cotangent that is not finite or at the end of the range.
Nothing is read then of what it has written.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import (
    add_product,
    solve_adjoint_with,
    solve_upper,
    solve_upper_adjoint,
    subtract_product,
    subtract_product_with_transpose,
    write_adjoint_product,
    write_minus_adjoint_times_transpose,
    write_minus_product,
    write_product,
    write_product_with_transpose,
)
from strategies.kernels.cpu.limits import FEW_RIGHT_HAND_SIDES
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    integers,
    matrices,
    numbers,
    packed,
    pivots,
    reals,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import (
    by_columns,
    conjugate,
    copy_near_one,
    copy_to,
    empty,
    fill_with_identity,
    is_near_one,
    multiply,
    normalize,
    write_inverse,
)
from strategies.kernels.cpu.loops.elimination import permute_columns, reverse, scratch_of_blocks
from strategies.kernels.cpu.loops.tall import add_gram, write_rows


def inv(task: Task) -> None:
    """Ā = −A⁻ᴴ G A⁻ᴴ, by the inverse itself, given by columns."""
    X, G, result = contiguous(task, 0), matrices(task, 1), contiguous(task, 2)
    n = X.shape[1]
    scratch, half = empty(n, n, X), empty(n, n, X)
    for i in single_matrices(task):
        # For results that have their rows one after the other: Āᴴ = −X Gᴴ X.
        W, power = _adjoint_near_one(G[i], scratch)
        if power == 0:
            report(task)
            continue
        write_product(half, X[i].T, W)
        write_minus_product(result[i].T, half, X[i].T)
        conjugate(result[i])
        multiply(result[i], power)


@compiled
def _adjoint_near_one(G: Array, scratch: Array) -> tuple[Array, float]:
    """Gᴴ by columns over a power of two, and that, as `normalize` returns it: where G lies, or a copy."""
    is_its_own = G.itemsize == G.real.itemsize and G.strides[1] == G.itemsize and is_near_one(G)
    if is_its_own:
        return G.T, 1.0
    power = copy_near_one(scratch, G.T)
    conjugate(scratch)
    return scratch, power


def solve(task: Task) -> None:
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    X, LU, swaps = contiguous(task, 0), contiguous(task, 1), pivots(task, 2)
    G, result, rhs_result = matrices(task, 3), contiguous(task, 4), contiguous(task, 5)
    Y = empty(*X.shape[1:], X)
    for i in single_matrices(task):
        power = copy_near_one(Y, G[i])
        if power == 0:
            report(task)
            continue
        solve_adjoint_with(LU[i].T, swaps[i], Y)
        copy_to(rhs_result[i], Y)
        write_minus_adjoint_times_transpose(result[i].T, X[i].T, Y)
        multiply(rhs_result[i], power)
        multiply(result[i], power)


def lu_factor(task: Task) -> None:
    """The reverse in `elimination`."""
    LU, order = contiguous(task, 0), integers(task, 1)
    G, result = matrices(task, 2), contiguous(task, 3)
    scratch = scratch_of_blocks(LU)
    for i in single_matrices(task):
        power = copy_near_one(result[i], G[i])
        if not _reverse(LU[i].T, order[i], result[i].T, power, scratch):
            report(task)


def lu(task: Task) -> None:
    """The same of the cotangents of L and U: P is constant."""
    LU, order = contiguous(task, 0), integers(task, 1)
    of_L, of_U, result = matrices(task, 2), matrices(task, 3), contiguous(task, 4)
    scratch = scratch_of_blocks(LU)
    for i in single_matrices(task):
        _pack(result[i], of_L[i], of_U[i])
        if not _reverse(LU[i].T, order[i], result[i].T, normalize(result[i].T), scratch):
            report(task)


@compiled
def _pack(LU: Array, L: Array, U: Array) -> None:
    m, n = LU.shape
    for i in range(m):
        for j in range(n):
            LU[i, j] = L[i, j] if j < i else U[i, j]


@compiled
def _reverse(LU: Array, order: Array, T: Array, power: float, scratch: Array) -> bool:
    """Overwrite the transposed cotangent by the transposed gradient, over what `normalize` returned."""
    if power == 0:
        return False
    reverse(np.conj(LU), T, scratch)
    permute_columns(T, order)
    multiply(T.T, power)
    return True


def det(task: Task) -> None:
    """Ā = ḡ conj(det A) A⁻ᴴ."""
    LU, swaps, mantissa = contiguous(task, 0), pivots(task, 1), numbers(task, 2)
    exponent, cotangent, result = integers(task, 3), numbers(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        multiple = cotangent[i, 0] * np.conj(mantissa[i, 0])
        _multiple_of_inverse_adjoint(multiple, LU[i].T, swaps[i], result[i].T)
        if exponent[i, 0] != 0:
            multiply_by_power_of_two(result[i], exponent[i, 0])


@compiled
def multiply_by_power_of_two(A: Array, exponent: int) -> None:
    """By 2^exponent, which is even, and may be beyond the range."""
    half = 2.0 ** (exponent / 2)
    for i in range(len(A)):
        for j in range(len(A)):
            A[i, j] = A[i, j] * half * half


def slogdet(task: Task) -> None:
    """Ā = ḡ A⁻ᴴ of real A, whose sign is constant."""
    LU, swaps = contiguous(task, 0), pivots(task, 1)
    cotangent, result = reals(task, 2), contiguous(task, 3)
    for i in single_matrices(task):
        multiple = LU.dtype.type(cotangent[i, 0])
        _multiple_of_inverse_adjoint(multiple, LU[i].T, swaps[i], result[i].T)


def slogdet_of_complex(task: Task) -> None:
    """Ā = (ḡ + i Im(s̄ conj(s))) A⁻ᴴ, s being the sign."""
    sign, LU, swaps = numbers(task, 0), contiguous(task, 1), pivots(task, 2)
    of_sign, of_log, result = numbers(task, 3), reals(task, 4), contiguous(task, 5)
    for i in single_matrices(task):
        turn = (of_sign[i, 0] * np.conj(sign[i, 0])).imag
        multiple = LU.dtype.type(complex(of_log[i, 0], turn))
        _multiple_of_inverse_adjoint(multiple, LU[i].T, swaps[i], result[i].T)


@compiled
def _multiple_of_inverse_adjoint(scale: complex, LU: Array, swaps: Array, result: Array) -> None:
    """Write the transpose of A⁻ᴴ, which is the conjugate of A⁻¹."""
    write_inverse(LU, swaps, result)
    for j in range(len(result)):
        for i in range(len(result)):
            result[i, j] = scale * np.conj(result[i, j])


def pinv(task: Task) -> None:
    """The formula of `strategies.formulas.pinv` at full column rank, A = Q R.

    Gradients are written by columns: a tall product by rows takes many times as long.
    """
    Q, R, G, result = (
        contiguous(task, 0),
        contiguous(task, 1),
        matrices(task, 2),
        contiguous(task, 3),
    )
    scratch = empty(Q.shape[2], Q.shape[1], Q)
    for i in single_matrices(task):
        W, power = _adjoint_near_one(G[i], scratch)
        if power == 0:
            report(task)
            continue
        _pinv(Q[i].T, R[i].T, W, result[i].T)
        multiply(result[i], power)


@compiled
def _pinv(Q: Array, R: Array, W: Array, gradient: Array) -> None:
    """W is the adjoint of the cotangent."""
    n = len(R)
    in_range, gram, along = empty(n, n, R), empty(n, n, R), empty(n, n, R)
    write_adjoint_product(in_range, Q, W)
    fill_with_identity(gram)
    solve_upper_adjoint(R, gram)
    solve_upper(R, gram)
    K = by_columns(in_range)
    solve_upper(R, K)
    for j in range(n):
        for i in range(n):
            along[i, j] = -np.conj(K[j, i])
    solve_upper_adjoint(R, along)
    subtract_product(along, in_range, gram)
    write_product(gradient, W, gram)
    add_product(gradient, Q, along)


def lstsq(task: Task) -> None:
    """The formula of `strategies.formulas.lstsq` for tall A = Q R of full rank."""
    A, B, X, R = matrices(task, 0), matrices(task, 1), contiguous(task, 2), contiguous(task, 3)
    G, result, rhs_result = matrices(task, 4), contiguous(task, 5), contiguous(task, 6)
    for i in single_matrices(task):
        w = by_columns(G[i])
        power = normalize(w)
        if power == 0:
            report(task)
        elif w.shape[1] <= FEW_RIGHT_HAND_SIDES:
            _lstsq_by_rows(
                _by_rows(A[i]), _by_rows(B[i]), X[i], R[i].T, w, result[i], rhs_result[i]
            )
        else:
            _lstsq(A[i], B[i], X[i], R[i].T, w, result[i], rhs_result[i])
        multiply(rhs_result[i], power)
        multiply(result[i], power)


@compiled
def _by_rows(A: Array) -> Array:
    """A where each row begins where the one before it ends; else a copy."""
    m, n = A.shape
    if A.strides[0] == n * A.itemsize and (n == 1 or A.strides[1] == A.itemsize):
        return packed(A)
    copy = np.empty((m, n), A.dtype)
    copy_to(copy, A)
    return copy


@compiled
def _lstsq_by_rows(
    A: Array, B: Array, X: Array, R: Array, w: Array, result: Array, rhs_result: Array
) -> None:
    """Reads A twice. A product with few columns takes longer, and one more pass to write."""
    (m, n), k = A.shape, B.shape[1]
    columns, gram = np.empty((2 * k, n), A.dtype), np.empty((1, k * n), A.dtype)
    rest = by_columns(w)
    _apply_gram(R, w)
    copy_to(columns[:k], w.T)
    add_gram(A, columns[:k], gram, 0)
    _correct(w, rest, gram.reshape(k, n).T, R)
    copy_to(columns[:k], w.T)
    copy_to(columns[k:], X.T)
    write_rows(A, B, columns, rhs_result, result, 0, m)


@compiled
def _lstsq(
    A: Array, B: Array, X: Array, R: Array, w: Array, result: Array, rhs_result: Array
) -> None:
    F, residual = by_columns(A), by_columns(B)
    rest, Z, gram = by_columns(w), empty(*B.shape, B), empty(*w.shape, B)
    _apply_gram(R, w)
    write_product(Z, F, w)
    write_adjoint_product(gram, F, Z)
    _correct(w, rest, gram, R)
    add_product(Z, F, rest)
    copy_to(rhs_result, Z)
    solution = by_columns(X)
    subtract_product(residual, F, solution)
    conjugate(w)
    conjugate(solution)
    write_product_with_transpose(result.T, w, residual)
    subtract_product_with_transpose(result.T, solution, Z)


@compiled
def _correct(w: Array, rest: Array, gram: Array, R: Array) -> None:
    """Add to w = (AᴴA)⁻¹G what is missing, given G and AᴴA w: as in `strategies.factors.Reflected`."""
    for j in range(w.shape[1]):
        for i in range(len(w)):
            rest[i, j] -= gram[i, j]
    _apply_gram(R, rest)
    for j in range(w.shape[1]):
        for i in range(len(w)):
            w[i, j] += rest[i, j]


@compiled
def _apply_gram(R: Array, x: Array) -> None:
    """X ← (AᴴA)⁻¹ x."""
    solve_upper_adjoint(R, x)
    solve_upper(R, x)
