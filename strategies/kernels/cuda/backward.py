"""Triton kernels of backwards, which wait for nothing: each reads its inputs and writes its results."""

import triton.language as tl

from strategies.kernels.cuda.blocks import (
    block,
    from_row,
    kernel,
    load_columns,
    load_entries,
    load_rows,
    normalize,
    store_columns,
    times,
)


@kernel
def lu(
    LU, positions, cotangent, result,
    count, m: tl.constexpr, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The reverse in `blocked_lu` with blocks of one column; a thread has the row of L U of a row of A."""
    matrices, rows, there = block(count, B, M, m)
    position = tl.load(positions + matrices.to(tl.int64)[:, None] * m + rows, there, M)
    F = load_columns(LU, matrices, position, there, m, n)
    S = load_columns(cotangent, matrices, position, there, m, n)
    power, reciprocal = normalize(S, n)
    S = times(S, reciprocal, n)
    k: tl.constexpr = m if m < n else n
    for j in tl.static_range(k - 1, -1, -1):
        lower = tl.where(position > j, F[j], 0.0)
        below = S[j]
        for c in tl.static_range(j + 1, n):
            below -= S[c] * load_entries(LU, matrices, count, j, c, m, n)
        pivot = load_entries(LU, matrices, count, j, j, m, n)
        below = tl.where(position > j, below / pivot, 0.0)
        corner = tl.sum(lower * below, 1)[:, None]
        found = ()
        for c in tl.static_range(n):
            if c < j:
                found = found + (S[c],)
            elif c == j:
                column = tl.where(position > j, below, S[c])
                found = found + (tl.where(position == j, S[c] - corner, column),)
            else:
                right = S[c] - tl.sum(S[c] * lower, 1)[:, None]
                found = found + (tl.where(position == j, right, S[c]),)
        S = found
    store_columns(result, times(S, power, n), matrices, rows, there, m, n)


@kernel
def solve(
    LU, orders, solution, cotangent, result, rhs_result,
    count, n: tl.constexpr, k: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    matrices, rows, there = block(count, B, M, n)
    F = load_rows(LU, matrices, rows, there, n, n)
    Y = load_columns(cotangent, matrices, rows, there, n, k)
    power, reciprocal = normalize(Y, k)
    Y = times(Y, reciprocal, k)
    for i in tl.static_range(n):
        here, upper = rows * 0 + i, tl.where(rows > i, F[i], 0.0)
        pivot = from_row(F[i], here)
        rest = ()
        for q in tl.static_range(k):
            y = from_row(Y[q], here) / pivot
            rest = rest + (tl.where(rows == i, y, Y[q] - upper * y),)
        Y = rest
    for last in tl.static_range(n - 1, -1, -1):
        here, lower = rows * 0 + last, tl.where(rows < last, F[last], 0.0)
        rest = ()
        for q in tl.static_range(k):
            rest = rest + (Y[q] - lower * from_row(Y[q], here),)
        Y = rest
    Y = times(Y, power, k)
    row_of_A = tl.load(orders + matrices.to(tl.int64)[:, None] * n + rows, there, 0)
    store_columns(rhs_result, Y, matrices, row_of_A, there, n, k)
    gradient = ()
    for j in tl.static_range(n):
        entries = 0.0 * Y[0]
        for q in tl.static_range(k):
            entries -= Y[q] * load_entries(solution, matrices, count, j, q, n, k)
        gradient = gradient + (entries,)
    store_columns(result, gradient, matrices, row_of_A, there, n, n)


@kernel
def inv(
    inverse, cotangent, result, count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Ā = −Xᴴ G Xᴴ, X = A⁻¹."""
    matrices, rows, there = block(count, B, M, n)
    X = load_rows(inverse, matrices, rows, there, n, n)
    G = load_columns(cotangent, matrices, rows, there, n, n)
    power, reciprocal = normalize(G, n)
    T, gradient = (), ()
    for j in tl.static_range(n):
        entries = 0.0 * X[0]
        for i in tl.static_range(n):
            entries += X[i] * (load_entries(cotangent, matrices, count, i, j, n, n) * reciprocal)
        T = T + (entries,)
    for j in tl.static_range(n):
        entries = 0.0 * X[0]
        for i in tl.static_range(n):
            entries -= T[i] * load_entries(inverse, matrices, count, j, i, n, n)
        gradient = gradient + (entries * power,)
    store_columns(result, gradient, matrices, rows, there, n, n)


@kernel
def det(
    LU, orders, scale, result,
    count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Ā = scale A⁻ᴴ, from A = P L U; a scale for each matrix, and a column of A⁻ᴴ for each thread."""
    matrices, columns, there = block(count, B, M, n)
    scales = load_entries(scale, matrices, count, 0, 0, 1, 1)
    Y = ()
    for i in tl.static_range(n):
        y = tl.where(columns == i, scales, 0.0)
        for s in tl.static_range(i):
            y -= load_entries(LU, matrices, count, s, i, n, n) * Y[s]
        Y = Y + (y / load_entries(LU, matrices, count, i, i, n, n),)
    X = ()
    for last in tl.static_range(n - 1, -1, -1):
        x = Y[last]
        for later in tl.static_range(last + 1, n):
            x -= load_entries(LU, matrices, count, later, last, n, n) * X[n - 1 - later]
        X = X + (x,)
        row_of_A = load_entries(orders, matrices, count, 0, last, 1, n)
        first = (matrices.to(tl.int64)[:, None] * n + row_of_A) * n
        tl.store(result + first + columns, x, there)


@kernel
def cholesky(
    factor, cotangent, result,
    count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The Hermitian gradient of A = L Lᴴ, as in `blocked_cholesky` with blocks of one column."""
    matrices, rows, there = block(count, B, M, n)
    F = load_columns(factor, matrices, rows, there, n, n)
    G = load_columns(cotangent, matrices, rows, there, n, n)
    S = ()
    for column in tl.static_range(n):
        S = S + (tl.where(rows >= column, G[column], 0.0),)
    power, reciprocal = normalize(S, n)
    S = times(S, reciprocal, n)
    for j in tl.static_range(n - 1, -1, -1):
        given, lower = S[j] * 0.5, tl.where(rows > j, F[j], 0.0)
        pivot = from_row(F[j], rows * 0 + j)
        below = given
        for c in tl.static_range(j + 1, n):
            below -= S[c] * from_row(F[j], rows * 0 + c)
        below = tl.where(rows > j, below / pivot, 0.0)
        corner = (from_row(given, rows * 0 + j) - tl.sum(lower * below, 1)[:, None]) / pivot
        found = ()
        for c in tl.static_range(n):
            if c < j:
                found = found + (S[c],)
            elif c == j:
                found = found + (tl.where(rows == j, corner, below),)
            else:
                found = found + (tl.where(rows == j, from_row(below, rows * 0 + c), S[c]),)
        S = found
    store_columns(result, times(S, power, n), matrices, rows, there, n, n)
