"""Triton programs: blocks of a few whole matrices, (matrices, rows, columns), padded to powers of two.

A row or column is taken out of a block by a sum over what it masks, which stays in registers whatever
its index; so the loops over pivots are real loops, and short to compile. Matrices beyond the end of
the batch, and what is padded, are zero or not a number, and never stored.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["PROGRAMS", "launch"]

_ENTRIES = 2048
"""Of a block that is made of several matrices: 16 for each thread of four warps."""


def launch(
    name: str, read: Sequence[Tensor], written: Sequence[Tensor], sides: Sequence[int]
) -> None:
    """Launch a program over a batch, on the current stream of the tensors' device.

    Args:
        name: of a program of this file.
        read: its inputs; each begins with the batch dimensions of the first.
        written: its results, contiguous.
        sides: of the matrices, as the program names them after `count`.
    """
    first = read[0]
    batch = first.shape[:-2]
    count = math.prod(batch)
    arguments: list[Any] = []
    for tensor in read:
        flat = tensor.resolve_neg().reshape(count, *tensor.shape[len(batch) :])
        arguments += (flat, *flat.stride())
    padded = [triton.next_power_of_2(side) for side in sides]
    matrices = max(1, _ENTRIES // (padded[0] * max(padded)))
    on_device = torch.cuda.device(first.device) if first.is_cuda else contextlib.nullcontext()
    with on_device:
        PROGRAMS[name][(triton.cdiv(count, matrices),)](
            *arguments, *written, count, *sides, *padded, matrices
        )


@triton.jit
def _place(batch_stride, row_stride, column_stride, matrices, rows, columns):
    return (
        matrices[:, None, None].to(tl.int64) * batch_stride
        + rows[None, :, None] * row_stride
        + columns[None, None, :] * column_stride
    )


@triton.jit
def _inside(matrices, rows, columns, count, m, n):
    return (
        (matrices[:, None, None] < count) & (rows[None, :, None] < m) & (columns[None, None, :] < n)
    )


@triton.jit
def _row(X, i, M: tl.constexpr):
    """Row i of each matrix, (matrices, columns)."""
    return tl.sum(tl.where(tl.arange(0, M)[None, :, None] == i, X, 0.0), 1)


@triton.jit
def _column(X, j, N: tl.constexpr):
    """Column j of each matrix, (matrices, rows)."""
    return tl.sum(tl.where(tl.arange(0, N)[None, None, :] == j, X, 0.0), 2)


@triton.jit
def _entry(x, i, N: tl.constexpr):
    """Entry i of each vector, (matrices,)."""
    return tl.sum(tl.where(tl.arange(0, N)[None, :] == i, x, 0), 1)


@triton.jit
def _after_swaps(pivots, matrices, batch_stride, pivot_stride, count, n, N: tl.constexpr):
    """The row of A that each row of L U is, (matrices, N)."""
    index = tl.arange(0, N)[None, :]
    order = index + tl.zeros_like(matrices)[:, None]
    for i in range(n):
        address = pivots + matrices.to(tl.int64) * batch_stride + i * pivot_stride
        other = tl.load(address, mask=matrices < count, other=1)[:, None] - 1
        here = _entry(order, i, N)[:, None]
        there = tl.sum(tl.where(index == other, order, 0), 1)[:, None]
        order = tl.where(index == i, there, tl.where(index == other, here, order))
    return order


@triton.jit
def _solve_adjoint(F, Y, n, N: tl.constexpr):
    """L⁻ᴴ U⁻ᴴ Y."""
    rows = tl.arange(0, N)[None, :, None]
    for i in range(n):
        upper = _row(F, i, N)
        y = _row(Y, i, N) / _entry(upper, i, N)[:, None]
        rest = tl.where(rows > i, Y - upper[:, :, None] * y[:, None, :], Y)
        Y = tl.where(rows == i, y[:, None, :], rest)
    for step in range(n):
        i = n - 1 - step
        lower = _row(F, i, N)
        y = _row(Y, i, N)
        Y = tl.where(rows < i, Y - lower[:, :, None] * y[:, None, :], Y)
    return Y


@triton.jit
def _solve_adjoint_from_the_right(F, Y, n, N: tl.constexpr):
    """Y L⁻ᴴ U⁻ᴴ."""
    columns = tl.arange(0, N)[None, None, :]
    for i in range(n):
        lower = _column(F, i, N)
        y = _column(Y, i, N)
        Y = tl.where(columns > i, Y - y[:, :, None] * lower[:, None, :], Y)
    for step in range(n):
        i = n - 1 - step
        upper = _column(F, i, N)
        y = _column(Y, i, N) / _entry(upper, i, N)[:, None]
        rest = tl.where(columns < i, Y - y[:, :, None] * upper[:, None, :], Y)
        Y = tl.where(columns == i, y[:, :, None], rest)
    return Y


@triton.jit
def _lu(
    LU, LU_batch, LU_row, LU_column, inverse_order, order_batch, order_row,
    cotangent, cotangent_batch, cotangent_row, cotangent_column, result,
    count, m, n, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """The reverse in `blocked_lu` with blocks of one column."""
    matrices = tl.program_id(0) * B + tl.arange(0, B)
    r, c = tl.arange(0, M), tl.arange(0, N)
    rows, across = r[None, :, None], c[None, None, :]
    inside = _inside(matrices, r, c, count, m, n)
    F = tl.load(LU + _place(LU_batch, LU_row, LU_column, matrices, r, c), mask=inside, other=0.0)
    place = _place(cotangent_batch, cotangent_row, cotangent_column, matrices, r, c)
    S = tl.load(cotangent + place, mask=inside, other=0.0)
    k = tl.minimum(m, n)
    for step in range(k):
        j = k - 1 - step
        is_below, is_right = (rows > j) & (across == j), (rows == j) & (across > j)
        lower = tl.sum(tl.where(is_below, F, 0.0), 2)
        upper = tl.sum(tl.where(is_right, F, 0.0), 1)
        pivot = _entry(_row(F, j, M), j, N)
        done = tl.where((rows > j) & (across > j), S, 0.0)
        below = _column(S, j, N) - tl.sum(done * upper[:, None, :], 2)
        right = _row(S, j, M) - tl.sum(done * lower[:, :, None], 1)
        below = tl.where(r[None, :] > j, below / pivot[:, None], 0.0)
        corner = tl.sum(lower * below, 1)
        S = tl.where(is_below, below[:, :, None], tl.where(is_right, right[:, None, :], S))
        S = tl.where((rows == j) & (across == j), S - corner[:, None, None], S)
    place = matrices[:, None].to(tl.int64) * order_batch + r[None, :] * order_row
    present = (matrices[:, None] < count) & (r[None, :] < m)
    came_from = tl.load(inverse_order + place, mask=present, other=-1)
    # Row i of the result is the one that row i of A went to: the row that goes to i.
    is_source = came_from[:, :, None] == tl.arange(0, M)[None, None, :]
    target = tl.sum(tl.where(is_source, r[None, :, None], 0), 1)
    place = (matrices[:, None].to(tl.int64) * m + target)[:, :, None] * n + across
    tl.store(result + place, S, mask=inside)


@triton.jit
def _solve(
    LU, LU_batch, LU_row, LU_column, pivots, pivots_batch, pivots_row,
    solution, solution_batch, solution_row, solution_column,
    cotangent, cotangent_batch, cotangent_row, cotangent_column, result, rhs_result,
    count, n, k, N: tl.constexpr, K: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """B̄ = A⁻ᴴ G and Ā = −B̄ Xᴴ, from A = P L U."""
    matrices = tl.program_id(0) * B + tl.arange(0, B)
    r, c = tl.arange(0, N), tl.arange(0, K)
    inside = _inside(matrices, r, r, count, n, n)
    of_rhs = _inside(matrices, r, c, count, n, k)
    F = tl.load(LU + _place(LU_batch, LU_row, LU_column, matrices, r, r), mask=inside, other=0.0)
    place = _place(cotangent_batch, cotangent_row, cotangent_column, matrices, r, c)
    Y = tl.load(cotangent + place, mask=of_rhs, other=0.0)
    place = _place(solution_batch, solution_row, solution_column, matrices, r, c)
    X = tl.load(solution + place, mask=of_rhs, other=0.0)
    Y = _solve_adjoint(F, Y, n, N)
    target = _after_swaps(pivots, matrices, pivots_batch, pivots_row, count, n, N)
    row = (matrices[:, None].to(tl.int64) * n + target)[:, :, None]
    tl.store(rhs_result + row * k + c[None, None, :], Y, mask=of_rhs)
    gradient = tl.zeros_like(F)
    for q in range(k):
        gradient -= _column(Y, q, K)[:, :, None] * _column(X, q, K)[:, None, :]
    tl.store(result + row * n + r[None, None, :], gradient, mask=inside)


@triton.jit
def _inv(
    LU, LU_batch, LU_row, LU_column, pivots, pivots_batch, pivots_row,
    cotangent, cotangent_batch, cotangent_row, cotangent_column, result,
    count, n, N: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Ā = −A⁻ᴴ G A⁻ᴴ = −P [L⁻ᴴ U⁻ᴴ (G P) L⁻ᴴ U⁻ᴴ], from A = P L U."""
    matrices = tl.program_id(0) * B + tl.arange(0, B)
    r = tl.arange(0, N)
    inside = _inside(matrices, r, r, count, n, n)
    F = tl.load(LU + _place(LU_batch, LU_row, LU_column, matrices, r, r), mask=inside, other=0.0)
    order = _after_swaps(pivots, matrices, pivots_batch, pivots_row, count, n, N)
    place = _place(cotangent_batch, cotangent_row, 0, matrices, r, r)
    place += order[:, None, :] * cotangent_column
    Y = tl.load(cotangent + place, mask=inside, other=0.0)
    Y = _solve_adjoint_from_the_right(F, _solve_adjoint(F, Y, n, N), n, N)
    row = (matrices[:, None].to(tl.int64) * n + order)[:, :, None]
    tl.store(result + row * n + r[None, None, :], -Y, mask=inside)


PROGRAMS = {
    "lu": _lu,
    "solve": _solve,
    "inv": _inv,
}
