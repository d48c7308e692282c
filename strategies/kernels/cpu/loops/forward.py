"""The forward of small matrices, a group of them at a time with the batch innermost.

LU with partial pivoting, QR by reflectors, and what is solved with them at once: a batched library
call spends most of its time between the matrices. Pivots, reflectors and their signs are those of
LAPACK (getrf, geqrf), so that its routines take the factors. The code that applies a reflector stands
in two places: with a function for both, a QR takes 5 to 30 % longer.
"""

from __future__ import annotations

import numpy as np

from strategies.kernels.cpu.loops.arguments import (
    Array,
    Task,
    compiled,
    group_size,
    groups,
    matrices,
    numbers,
    pivots,
    reals,
)
from strategies.kernels.cpu.loops.condition import (
    NEVER_GROWS,
    first_vector,
    growth_limit,
    smallest_from,
)
from strategies.kernels.cpu.loops.grouped import (
    adjoint,
    gather,
    identity,
    scatter,
    side_by_side,
    solve_unit_lower,
    solve_upper,
    swap,
    swap_columns,
    zeros,
)
from strategies.kernels.cpu.loops.small import modulus


@compiled
def _eliminate(F: Array, swaps: Array, info: Array, start: int) -> None:
    """Overwrite square matrices by L and U; a column of zeros is noted and passed over."""
    n, _, lanes = F.shape
    count = len(swaps)
    largest, position = np.empty(lanes, F.real.dtype), np.empty(lanes, np.int64)
    divisor = np.empty(lanes, F.dtype)
    for matrix in range(start, min(start + lanes, count)):
        info[matrix, 0] = 0
    for j in range(n):
        for lane in range(lanes):
            largest[lane], position[lane] = modulus(F[j, j, lane]), j
        for r in range(j + 1, n):
            for lane in range(lanes):
                size = modulus(F[r, j, lane])
                if size > largest[lane]:
                    largest[lane], position[lane] = size, r
        for lane in range(lanes):
            p = position[lane]
            if p != j:
                for c in range(n):
                    F[j, c, lane], F[p, c, lane] = F[p, c, lane], F[j, c, lane]
            is_zero = largest[lane] == 0
            divisor[lane] = F.dtype.type(1) if is_zero else F[j, j, lane]
            matrix = start + lane
            if matrix < count:
                swaps[matrix, j] = p + 1
                if is_zero and info[matrix, 0] == 0:
                    info[matrix, 0] = j + 1
        for r in range(j + 1, n):
            for lane in range(lanes):
                F[r, j, lane] /= divisor[lane]
            for c in range(j + 1, n):
                for lane in range(lanes):
                    F[r, c, lane] -= F[r, j, lane] * F[j, c, lane]


@compiled
def _has_zero(F: Array, n: int) -> bool:
    """Whether a diagonal entry of a group is zero: nothing is to be divided by it."""
    found = False
    for i in range(n):
        for lane in range(F.shape[2]):
            found |= F[i, i, lane] == 0
    return found


@compiled
def _squares(F: Array, column: int, rows: int, sums: Array) -> None:
    """The sum of squares of a column down to some row, in double precision."""
    for lane in range(len(sums)):
        sums[lane] = 0
    for r in range(rows):
        for lane in range(len(sums)):
            entry = F[r, column, lane]
            sums[lane] += np.float64(entry.real) ** 2 + np.float64(entry.imag) ** 2


@compiled
def _factor(F: Array, swaps: Array, info: Array, start: int) -> None:
    """`_eliminate`, and −1 in `info` where a column of U is too long beside that of A."""
    n, _, lanes = F.shape
    before, after = np.empty((n, lanes)), np.empty(lanes)
    for j in range(n):
        _squares(F, j, n, before[j])
    _eliminate(F, swaps, info, start)
    limit = growth_limit(n) ** 2
    for j in range(NEVER_GROWS, n):
        _squares(F, j, j + 1, after)
        for lane in range(min(lanes, len(info) - start)):
            if after[lane] > limit * before[j, lane] and info[start + lane, 0] == 0:
                info[start + lane, 0] = -1


def solve(task: Task) -> None:
    """X = A⁻¹B, LU, pivots, and the position of the first zero pivot or −1 for growth."""
    A, B, X = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    LU, swaps, info = matrices(task, 3), pivots(task, 4), pivots(task, 5)
    n = A.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F, Y = gather(A, start, lanes), gather(B, start, lanes)
        _factor(F, swaps, info, start)
        scatter(F, LU, start)
        if not _has_zero(F, n):
            swap(Y, swaps, start, True)
            solve_unit_lower(F, Y)
            solve_upper(F, Y)
            scatter(Y, X, start)


def inv(task: Task) -> None:
    """A⁻¹, LU, pivots, and the position of the first zero pivot or −1 for growth."""
    A, result, LU = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    swaps, info = pivots(task, 3), pivots(task, 4)
    n = A.shape[1]
    lanes = group_size(task)
    for start in groups(task):
        F = gather(A, start, lanes)
        _factor(F, swaps, info, start)
        scatter(F, LU, start)
        if not _has_zero(F, n):
            Y = identity(n, F)
            # L⁻¹ is lower triangular.
            for i in range(n):
                for r in range(i + 1, n):
                    for c in range(i + 1):
                        for lane in range(lanes):
                            Y[r, c, lane] -= F[r, i, lane] * Y[i, c, lane]
            solve_upper(F, Y)
            swap_columns(Y, swaps, start)
            scatter(Y, result, start)
        else:
            result[start : start + lanes] = np.nan


@compiled
def _norms(F: Array, j: int, below: Array, norms: Array) -> None:
    """Of a column from the diagonal on, and of what is below it its square or whether it is zero."""
    m, _, lanes = F.shape
    numbers = np.finfo(F.real.dtype)
    for lane in range(lanes):
        below[lane] = 0
    for r in range(j + 1, m):
        for lane in range(lanes):
            entry = F[r, j, lane]
            below[lane] += entry.real**2 + entry.imag**2
    for lane in range(lanes):
        head = F[j, j, lane]
        norms[lane] = below[lane] + (head.real**2 + head.imag**2)
    for lane in range(lanes):
        # Squares may have overflowed, or lost digits below the smallest number.
        if norms[lane] > numbers.max or norms[lane] < numbers.tiny / numbers.eps:
            _norm_of_one(F, j, lane, below, norms)
        else:
            norms[lane] = np.sqrt(norms[lane])


@compiled
def _norm_of_one(F: Array, j: int, lane: int, below: Array, norms: Array) -> None:
    largest = modulus(F[j, j, lane])
    below[lane] = 0
    for r in range(j + 1, len(F)):
        size = modulus(F[r, j, lane])
        largest = max(largest, size)
        below[lane] += size != 0
    total = F.real.dtype.type(0)
    if largest > 0:
        for r in range(j, len(F)):
            total += (F[r, j, lane].real / largest) ** 2 + (F[r, j, lane].imag / largest) ** 2
    norms[lane] = largest * np.sqrt(total)


@compiled
def reflect(F: Array, scales: Array) -> None:
    """Overwrite tall matrices by R and reflectors, and reflect what further columns there are.

    Args:
        F: (m, n + k, lanes).
        scales: of the n reflectors I − τ v vᴴ, (n, lanes).
    """
    m, columns, lanes = F.shape
    below, norms = np.empty(lanes, F.real.dtype), np.empty(lanes, F.real.dtype)
    divisor, along = np.empty(lanes, F.dtype), np.empty(lanes, F.dtype)
    one = F.dtype.type(1)
    for j in range(len(scales)):
        _norms(F, j, below, norms)
        for lane in range(lanes):
            head = F[j, j, lane]
            if below[lane] == 0 and head.imag == 0:
                scales[j, lane], divisor[lane] = 0, one
            else:
                beta = F.dtype.type(-np.copysign(norms[lane], head.real))
                scales[j, lane], divisor[lane] = (beta - head) / beta, head - beta
                F[j, j, lane] = beta
        for r in range(j + 1, m):
            for lane in range(lanes):
                F[r, j, lane] /= divisor[lane]
        for c in range(j + 1, columns):
            for lane in range(lanes):
                along[lane] = F[j, c, lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    along[lane] += np.conj(F[r, j, lane]) * F[r, c, lane]
            for lane in range(lanes):
                along[lane] *= np.conj(scales[j, lane])
                F[j, c, lane] -= along[lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    F[r, c, lane] -= F[r, j, lane] * along[lane]


@compiled
def basis_of(F: Array, scales: Array) -> Array:
    """The columns of Q that span the range."""
    m, _, lanes = F.shape
    n = len(scales)
    Q = zeros(m, n, F)
    along = np.empty(lanes, F.dtype)
    for j in range(n - 1, -1, -1):
        for lane in range(lanes):
            Q[j, j, lane] = 1
        for c in range(j, n):
            for lane in range(lanes):
                along[lane] = Q[j, c, lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    along[lane] += np.conj(F[r, j, lane]) * Q[r, c, lane]
            for lane in range(lanes):
                along[lane] *= scales[j, lane]
                Q[j, c, lane] -= along[lane]
            for r in range(j + 1, m):
                for lane in range(lanes):
                    Q[r, c, lane] -= F[r, j, lane] * along[lane]
    return Q


def pinv(task: Task) -> None:
    """A⁺ = R⁻¹Qᴴ of tall A, or NaN if a diagonal entry of R is zero; Q and R."""
    A, result, basis, R = matrices(task, 0), matrices(task, 1), matrices(task, 2), matrices(task, 3)
    n = A.shape[2]
    lanes = group_size(task)
    for start in groups(task):
        F = gather(A, start, lanes)
        scales = np.empty((n, lanes), F.dtype)
        reflect(F, scales)
        Q = basis_of(F, scales)
        scatter(Q, basis, start)
        for r in range(n):
            for c in range(r):
                for lane in range(lanes):
                    F[r, c, lane] = 0
        scatter(F[:n], R, start)
        if not _has_zero(F, n):
            Y = adjoint(Q)
            solve_upper(F, Y)
            scatter(Y, result, start)
        else:
            result[start : start + lanes] = np.nan


@compiled
def _write_smallest(F: Array, n: int, result: Array, start: int) -> None:
    """The estimate of σ_n of each R of a group."""
    columns, vector, y = np.empty((n, n), F.dtype), first_vector(n), np.empty(n, F.dtype)
    for lane in range(min(F.shape[2], len(result) - start)):
        for c in range(n):
            for r in range(c + 1):
                columns[c, r] = F[r, c, lane]
        result[start + lane, 0] = smallest_from(columns, vector, y, False)


def lstsq(task: Task) -> None:
    """X = A⁺B of tall A if no diagonal entry of R is zero; R and reflectors, their scales, and σ_n."""
    A, B, X = matrices(task, 0), matrices(task, 1), matrices(task, 2)
    reflectors, scales_result, smallest = matrices(task, 3), numbers(task, 4), reals(task, 5)
    n = A.shape[2]
    lanes = group_size(task)
    for start in groups(task):
        F = side_by_side(A, B, start, lanes)
        scales = np.empty((n, lanes), F.dtype)
        reflect(F, scales)
        scatter(F[:, :n], reflectors, start)
        for lane in range(min(lanes, len(A) - start)):
            for j in range(n):
                scales_result[start + lane, j] = scales[j, lane]
        _write_smallest(F, n, smallest, start)
        if not _has_zero(F, n):
            Y = F[:n, n:].copy()
            solve_upper(F, Y)
            scatter(Y, X, start)
