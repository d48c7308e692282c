"""QR factorizations of square and tall matrices, and their backward, by `strategies.formulas.qr`.

By LAPACK, matrix after matrix; or across the matrices of a batch, with the reflectors of `forward`. Of the
backward a matrix whose columns are dependent is reported.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.blas import add_product as add_product_of_one
from strategies.kernels.cpu.blas import (
    form_basis,
    solve_upper_adjoint_from_right,
    subtract_product_with_adjoint,
    write_adjoint_product,
    write_product,
)
from strategies.kernels.cpu.blas import reflect as reflect_one
from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    contiguous,
    group_size,
    groups,
    matrices,
    report,
    single_matrices,
)
from strategies.kernels.cpu.loops.columns import copy_to, empty
from strategies.kernels.cpu.loops.forward import basis_of, reflect
from strategies.kernels.cpu.loops.grouped import (
    add_adjoint_product,
    add_product,
    gather,
    scatter,
    zeros,
)


def qr(task: Task) -> None:
    """A = Q R of Aᵀ; Q and R by columns."""
    A, Q, R = matrices(task, 0), contiguous(task, 1), contiguous(task, 2)
    n = A.shape[1]
    scales, scratch = np.empty(n, A.dtype), np.empty(64 * n, A.dtype)
    for i in single_matrices(task):
        basis = Q[i].T
        copy_to(basis, A[i].T)
        reflect_one(basis, scales, scratch)
        for c in range(n):
            for r in range(n):
                R[i, c, r] = basis[r, c] if r <= c else 0
        form_basis(basis, scales, scratch)


def qr_backward(task: Task) -> None:
    """Ā by columns, from Q̄ᵀ and R̄."""
    Q, R = contiguous(task, 0), contiguous(task, 1)
    of_Q, of_R, result = matrices(task, 2), matrices(task, 3), contiguous(task, 4)
    m, n = Q.shape[2], Q.shape[1]
    H, W, N = empty(n, n, Q), empty(n, n, Q), empty(n, n, Q)
    for i in single_matrices(task):
        G = result[i].T
        copy_to(G, of_Q[i].T)
        for c in range(n):
            for r in range(n):
                H[r, c] = of_R[i, r, c] if r <= c else 0
        if not _is_independent(R[i : i + 1].transpose(2, 1, 0)):
            report(task)
        write_adjoint_product(W, Q[i].T, G)
        copy_to(N, W)
        subtract_product_with_adjoint(N, H, R[i].T)
        _add_middle(W, N, m > n)
        if m > n:
            add_product_of_one(G, Q[i].T, W)
        else:
            write_product(G, Q[i].T, W)
        solve_upper_adjoint_from_right(R[i].T, G)


@compiled
def _add_middle(W: Array, N: Array, is_tall: bool) -> None:
    """Overwrite W by M if A is tall, else by W + M, of which the upper triangle is that of R̄Rᴴ.

    Of N its negative is given.
    """
    for c in range(len(W)):
        W[c, c] = (0 if is_tall else W[c, c]) - N[c, c].real
        for r in range(c):
            W[r, c] = -N[r, c] if is_tall else W[r, c] - N[r, c]
            W[c, r] = (0 if is_tall else W[c, r]) - np.conj(N[r, c])


def qr_across(task: Task) -> None:
    """A = Q R; Q and R by columns."""
    A = matrices(task, 0)
    Q, R = matrices(task, 1).transpose(0, 2, 1), matrices(task, 2).transpose(0, 2, 1)
    n, most = A.shape[2], group_size(task)
    for start in groups(task):
        lanes = min(most, len(A) - start)
        F = gather(A, start, lanes)
        scales = np.empty((n, lanes), F.dtype)
        reflect(F, scales)
        scatter(basis_of(F, scales), Q, start)
        _clear_lower(F)
        scatter(F[:n], R, start)


def qr_across_backward(task: Task) -> None:
    """Ā, row after row."""
    Q, R = matrices(task, 0).transpose(0, 2, 1), matrices(task, 1).transpose(0, 2, 1)
    of_Q, of_R, result = matrices(task, 2), matrices(task, 3), matrices(task, 4)
    most = group_size(task)
    for start in groups(task):
        lanes = min(most, len(Q) - start)
        basis, F = gather(Q, start, lanes), gather(R, start, lanes)
        G, H = gather(of_Q, start, lanes), gather(of_R, start, lanes)
        if not _is_independent(F):
            report(task)
        _gradient(basis, F, G, H)
        scatter(G, result, start)


@compiled
def _clear_lower(F: Array) -> None:
    for r in range(F.shape[1]):
        for c in range(r):
            for lane in range(F.shape[2]):
                F[r, c, lane] = 0


@compiled
def _is_independent(R: Array) -> bool:
    """Whether no diagonal entry is as small, beside its column, as rounding may leave it; false of NaN.

    Nor so small that its reciprocal is out of range.
    """
    n, _, lanes = R.shape
    numbers = np.finfo(R.real.dtype)
    noise = 2 * max(n, 8) * numbers.eps
    found = True
    for c in range(n):
        for lane in range(lanes):
            squares = 0.0
            for r in range(c + 1):
                squares += abs(R[r, c, lane]) ** 2
            found &= abs(R[c, c, lane]) > max(noise * np.sqrt(squares), 4 * numbers.tiny)
    return found


@compiled
def _gradient(Q: Array, R: Array, G: Array, H: Array) -> None:
    """Overwrite G, the cotangent of Q, given H, that of R."""
    m, n, lanes = Q.shape
    W = zeros(n, n, R)
    add_adjoint_product(W, Q, G)
    # W becomes M if A is tall, else W + M, of which the upper triangle is that of R̄Rᴴ.
    product = np.empty(lanes, R.dtype)
    for r in range(n):
        for c in range(r, n):
            product[:] = 0
            for k in range(c, n):
                for lane in range(lanes):
                    product[lane] += H[r, k, lane] * np.conj(R[c, k, lane])
            for lane in range(lanes):
                entry = product[lane] - W[r, c, lane]
                if c == r:
                    W[r, r, lane] = entry.real + (0 if m > n else W[r, r, lane])
                else:
                    W[r, c, lane] = entry if m > n else product[lane]
                    W[c, r, lane] = np.conj(entry) + (0 if m > n else W[c, r, lane])
    if m == n:
        G[:] = 0
    add_product(G, 1, Q, W)
    # G R⁻ᴴ.
    for c in range(n - 1, -1, -1):
        for lane in range(lanes):
            product[lane] = 1 / np.conj(R[c, c, lane])
        for i in range(m):
            for lane in range(lanes):
                G[i, c, lane] *= product[lane]
            for k in range(c):
                for lane in range(lanes):
                    G[i, k, lane] -= G[i, c, lane] * np.conj(R[k, c, lane])
