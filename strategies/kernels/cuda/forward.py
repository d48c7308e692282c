"""Triton kernels of forwards: factors, results and a flag where a matrix is no usual one.

Elimination leaves rows where they are, and keeps the position that each has in L U. A flag is raised for
what `strategies.kernels.cpu.plans` raises one for: a pivot that is zero or may be roundoff, growth, a norm
that is far from one, what is not finite. Nothing that was computed is used then.
"""

import triton
import triton.language as tl

from strategies.kernels.cuda.blocks import block, from_row, kernel, load_columns, store_columns


@triton.jit
def _raise(flag, is_usual, matrices, count):
    """A flag for the whole batch, unless all is as usual for each matrix: (matrices, 1)."""
    unusual = ~is_usual & (matrices[:, None] < count)
    tl.atomic_or(flag, (tl.max(tl.max(unusual.to(tl.int32), 1), 0) > 0).to(tl.int32))


@triton.jit
def _sum(x):
    """The sum over the rows of each matrix, for all of its threads."""
    return tl.sum(x, 1)[:, None]


@triton.jit
def _is_any(x):
    """Whether something is true of some row of each matrix."""
    return tl.max(x.to(tl.int32), 1)[:, None] > 0


@triton.jit
def _sum_of_squares(F, n: tl.constexpr):
    squares = F[0] * F[0]
    for j in tl.static_range(1, n):
        squares += F[j] * F[j]
    return _sum(squares)


@triton.jit
def _is_in_safe_range(F, n: tl.constexpr):
    """Whether the norm of each matrix is not far from one: `scaled_rule.is_in_safe_range`."""
    most: tl.constexpr = 2.0**340 if F[0].dtype == tl.float64 else 2.0**42
    squares = _sum_of_squares(F, n)
    return (squares > 1.0 / most) & (squares < most)


@triton.jit
def _limit(like):
    """What D over ε and a regular pivot stays below: `factors.lu_rank`."""
    reciprocal: tl.constexpr = 2.0**52 if like.dtype == tl.float64 else 2.0**23
    return reciprocal / 3.0


@triton.jit
def _eliminate(F, rows, m: tl.constexpr, n: tl.constexpr):
    """Rows of L U as the rows of A, the position of each, and the rows in the order of their positions.

    Also LAPACK's pivots, one for each of the first rows, and the sign of the permutation.
    """
    k: tl.constexpr = m if m < n else n
    position, order, sign = rows, (), 1.0 + 0.0 * F[0]
    pivots = rows * 0
    for i in tl.static_range(k):
        sizes = tl.abs(F[i])
        is_candidate = (position >= i) & (rows < m) & (sizes == sizes)
        chosen = tl.argmax(tl.where(is_candidate, sizes, -1.0), 1)[:, None] + rows * 0
        is_chosen = rows == chosen
        came_from = from_row(position, chosen)
        position = tl.where(is_chosen, i, tl.where(position == i, came_from, position))
        pivots = tl.where(rows == i, came_from + 1, pivots)
        sign = tl.where(came_from == i, sign, -sign)
        order = order + (chosen,)
        below = position > i
        factor = tl.where(below, F[i] / from_row(F[i], chosen), 0.0)
        reduced = ()
        for j in tl.static_range(n):
            if j < i:
                reduced = reduced + (F[j],)
            elif j == i:
                reduced = reduced + (tl.where(below, factor, F[j]),)
            else:
                reduced = reduced + (F[j] - factor * from_row(F[j], chosen),)
        F = reduced
    return F, position, order, pivots, sign


@triton.jit
def _are_clear(F, position, order, safety, k: tl.constexpr):
    """Whether bounds tell that all pivots but the last are regular, and the last by a factor.

    The bounds are those of `clear_pivots` in `csrc/include/roundoff.hpp`.
    """
    of_x, bounds_of_y = 0.0 * F[0], ()
    others, last = position >= 0, position >= 0
    for i in tl.static_range(k):
        above = position < i
        pivot = tl.abs(from_row(F[i], order[i]))
        squares = _sum(tl.where(above, F[i] * F[i], 0.0)) + pivot * pivot
        terms = _sum(tl.where(above, tl.abs(F[i]) * of_x, 0.0))
        x = (tl.maximum(tl.sqrt(squares), pivot) + terms) / pivot
        of_x = tl.where(position == i, x, of_x)
        of_L, y = 1.0 + 0.0 * F[0], 0.0 * F[0]
        for s in tl.static_range(i):
            factor = tl.abs(from_row(F[s], order[i]))
            of_L += factor * factor
            y += factor * bounds_of_y[s]
        y += tl.sqrt(of_L)
        bounds_of_y = bounds_of_y + (y,)
        if i < k - 1:
            others = others & (x * y < _limit(F[0]))
        else:
            last = x * y * safety < _limit(F[0])
    return others, last


@triton.jit
def _entries_of(X, index, N: tl.constexpr, axis: tl.constexpr):
    """Row (axis 1) or column (axis 2) of each of a block of matrices, (matrices, rows, columns)."""
    at = tl.arange(0, N)
    mask = at[None, :, None] if axis == 1 else at[None, None, :]
    return tl.sum(tl.where(mask == index, X, 0.0), axis)


@triton.jit
def _are_regular(
    LU, matrices, count, m: tl.constexpr, n: tl.constexpr, safety, B: tl.constexpr, K: tl.constexpr
):
    """Whether no pivot may be roundoff: `lu_rank.regular_pivots`, of factors in memory.

    Seldom asked for, and so by loops over blocks that are short to compile.
    """
    k: tl.constexpr = m if m < n else n
    r = tl.arange(0, K)[None, :]
    rows, columns = r[:, :, None], r[:, None, :]
    limit = _limit(tl.load(LU))
    first = matrices.to(tl.int64)[:, None, None] * (m * n)
    there = (matrices[:, None, None] < count) & (rows < k) & (columns < k)
    identity = tl.where(rows == columns, 1.0, tl.zeros((B, K, K), tl.float64))
    F = tl.load(LU + first + rows * n + columns, there, 0.0).to(tl.float64)
    F = tl.where(there, F, identity)
    Y, X, T = identity, identity, tl.zeros((B, K, K), tl.float64)
    for s in range(k):
        lower = tl.where(r > s, _entries_of(F, s, K, 2), 0.0)
        upper = tl.where(r >= s, _entries_of(F, s, K, 1), 0.0)
        Y -= lower[:, :, None] * _entries_of(Y, s, K, 1)[:, None, :]
        moduli = tl.where(r == s, 1.0, tl.abs(lower))
        T += moduli[:, :, None] * tl.abs(upper)[:, None, :]
    for step in range(k):
        s = k - 1 - step
        upper = _entries_of(F, s, K, 2)
        pivot = tl.sum(tl.where(r == s, upper, 0.0), 1)
        x = _entries_of(X, s, K, 1) / pivot[:, None]
        X = tl.where(rows < s, X - upper[:, :, None] * x[:, None, :], X)
        X = tl.where(rows == s, x[:, None, :], X)
    Y, X, T = Y * Y, X * X, T * T
    product = tl.zeros((B, K, K), tl.float64)  # (Y T)ᵀ
    for s in range(k):
        product += _entries_of(T, s, K, 1)[:, :, None] * _entries_of(Y, s, K, 2)[:, None, :]
    deviation = tl.sqrt(tl.sum(product * X, 1))
    deviation = tl.where(r == k - 1, deviation * safety, deviation)
    return ~_is_any((r < k) & ~(deviation < limit))


@triton.jit
def _has_grown(F, A, position, n: tl.constexpr):
    """Whether a column of U is much longer than that of A: `factors.condition.has_grown`."""
    grown = position < 0
    for j in tl.static_range(n):
        after = _sum(tl.where(position <= j, F[j] * F[j], 0.0))
        before = _sum(A[j] * A[j])
        grown = grown | ~(tl.sqrt(after) <= (32.0 + n / 8.0) * tl.sqrt(before))
    return grown


@triton.jit
def _is_eliminated(F, A, position, order, n: tl.constexpr):
    """Whether a matrix of moderate norm has no zero pivot, and has not grown."""
    is_usual = _is_in_safe_range(A, n) & ~_has_grown(F, A, position, n)
    for i in tl.static_range(n):
        is_usual = is_usual & (tl.abs(from_row(F[i], order[i])) > 0.0)
    return is_usual


@triton.jit
def _solve(F, position, order, Y, n: tl.constexpr, k: tl.constexpr):
    """A⁻¹Y in the order of the rows of L U."""
    for i in tl.static_range(n):
        lower = tl.where(position > i, F[i], 0.0)
        rest = ()
        for q in tl.static_range(k):
            rest = rest + (Y[q] - lower * from_row(Y[q], order[i]),)
        Y = rest
    for last in tl.static_range(n - 1, -1, -1):
        upper, pivot = tl.where(position < last, F[last], 0.0), from_row(F[last], order[last])
        rest = ()
        for q in tl.static_range(k):
            x = from_row(Y[q], order[last]) / pivot
            rest = rest + (tl.where(position == last, x, Y[q] - upper * x),)
        Y = rest
    return Y


@kernel
def lu(
    A, LU, pivots, positions, flag, safety,
    count, m: tl.constexpr, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Packed factors, LAPACK's pivots, and the position in L U of each row of A."""
    k: tl.constexpr = m if m < n else n
    matrices, rows, there = block(count, B, M, m)
    X = load_columns(A, matrices, rows, there, m, n)
    F, position, order, swaps, _ = _eliminate(X, rows, m, n)
    store_columns(LU, F, matrices, position, there, m, n)
    store_columns(pivots, (swaps,), matrices, rows, there & (rows < k), k, 1)
    store_columns(positions, (position,), matrices, rows, there, m, 1)
    others, last = _are_clear(F, position, order, safety, k)
    is_usual, is_clear = _is_in_safe_range(X, n), ~_is_any(~(others & last))
    doubt = ~is_clear & is_usual & (matrices[:, None] < count)
    if tl.max(tl.max(doubt.to(tl.int32), 1), 0) > 0:
        tl.debug_barrier()  # after which every thread sees what others have stored
        is_clear = is_clear | _are_regular(LU, matrices, count, m, n, safety, B, M)
    _raise(flag, is_usual & is_clear, matrices, count)


@kernel
def solve(
    A, right_sides, result, LU, orders, flag,
    count, n: tl.constexpr, k: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """A⁻¹ times right-hand sides, packed factors, and the row of A that each of their rows was."""
    matrices, rows, there = block(count, B, M, n)
    X = load_columns(A, matrices, rows, there, n, n)
    Y = load_columns(right_sides, matrices, rows, there, n, k)
    F, position, order, _, _ = _eliminate(X, rows, n, n)
    is_usual = _is_eliminated(F, X, position, order, n)
    is_usual = is_usual & (_is_in_safe_range(Y, k) | (_sum_of_squares(Y, k) == 0.0))
    store_columns(LU, F, matrices, position, there, n, n)
    store_columns(orders, (rows,), matrices, position, there, n, 1)
    Y = _solve(F, position, order, Y, n, k)
    store_columns(result, Y, matrices, position, there, n, k)
    _raise(flag, ~_is_any(~is_usual), matrices, count)


@kernel
def inv(
    A, result, flag,
    count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """A⁻¹."""
    matrices, rows, there = block(count, B, M, n)
    X = load_columns(A, matrices, rows, there, n, n)
    F, position, order, _, _ = _eliminate(X, rows, n, n)
    is_usual = _is_eliminated(F, X, position, order, n)
    identity = ()
    for j in tl.static_range(n):
        identity = identity + (tl.where(rows == j, 1.0, 0.0 * X[0]),)
    Y = _solve(F, position, order, identity, n, n)
    store_columns(result, Y, matrices, position, there, n, n)
    _raise(flag, ~_is_any(~is_usual), matrices, count)


@kernel
def det(
    A, result, logarithm, LU, orders, flag, far,
    count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The determinant, the logarithm of its modulus, packed factors, the row of A that each of theirs was.

    Usual is what `factors.determinant` does not say to be hard, by bounds on roundoff in pivots, where
    neither pivots nor determinant are further from one than `far`.
    """
    matrices, rows, there = block(count, B, M, n)
    X = load_columns(A, matrices, rows, there, n, n)
    F, position, order, _, product = _eliminate(X, rows, n, n)
    small: tl.constexpr = 2.0**-26 if X[0].dtype == tl.float64 else 2.0**-11.5
    widths, of_rows, of_A = (), 0.0 * X[0], 0.0 * X[0]
    for j in tl.static_range(n):
        width = tl.max(tl.abs(X[j]), 1)[:, None]
        scale = tl.where(width > 0.0, 1.0 / width, 0.0)
        widths = widths + (width,)
        of_A = tl.maximum(of_A, tl.abs(X[j]) * scale)
        of_rows = tl.maximum(of_rows, tl.where(position <= j, tl.abs(F[j]) * scale, 0.0))
    terms = of_rows  # of |L||U|, the largest entry of each row, with scaled columns
    negligible, is_easy = position * 0, position >= 0
    for i in tl.static_range(n):
        of_row = from_row(of_rows, order[i])
        terms = tl.where(position > i, tl.maximum(terms, tl.abs(F[i]) * of_row), terms)
        pivot = from_row(F[i], order[i])
        size = tl.abs(pivot)
        negligible += (size <= small * from_row(terms, order[i]) * widths[i]).to(tl.int32)
        is_easy = is_easy & (size > 1.0 / far) & (size < far) & (widths[i] < far)
        product *= pivot
    is_easy = is_easy & ~_is_any((rows < n) & ~(terms <= (32.0 + n / 8.0) * of_A))
    others, _ = _are_clear(F, position, order, 1.0, n)
    size = tl.abs(product)
    is_easy = is_easy & ((negligible < 2) | others) & (size > 1.0 / far) & (size < far)
    there_once = there & (rows == 0)
    store_columns(result, (product,), matrices, rows, there_once, 1, 1)
    logarithms = tl.log(size.to(tl.float64)).to(X[0].dtype)
    store_columns(logarithm, (logarithms,), matrices, rows, there_once, 1, 1)
    store_columns(LU, F, matrices, position, there, n, n)
    store_columns(orders, (rows,), matrices, position, there, n, 1)
    _raise(flag, ~_is_any(~is_easy), matrices, count)


@kernel
def cholesky(
    A, result, flag,
    count, n: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The lower triangular factor, from the lower triangle."""
    matrices, rows, there = block(count, B, M, n)
    X = load_columns(A, matrices, rows, there, n, n)
    F = ()
    for j in tl.static_range(n):
        F = F + (tl.where(rows >= j, X[j], 0.0),)
    is_usual = _is_in_safe_range(F, n)
    for j in tl.static_range(n):
        pivot = from_row(F[j], rows * 0 + j)
        is_usual = is_usual & (pivot > 0.0)
        root = tl.sqrt(pivot)
        below = tl.where(rows > j, F[j] / root, 0.0)
        reduced = ()
        for c in tl.static_range(n):
            if c < j:
                reduced = reduced + (F[c],)
            elif c == j:
                reduced = reduced + (tl.where(rows == j, root, below),)
            else:
                product = below * from_row(below, rows * 0 + c)
                reduced = reduced + (tl.where(rows >= c, F[c] - product, 0.0),)
        F = reduced
    store_columns(result, F, matrices, rows, there, n, n)
    _raise(flag, ~_is_any(~is_usual), matrices, count)
