"""Factors of small matrices and what is solved with them, in one pass.

A batched library call goes from matrix to matrix, and to form an inverse there are two or three such
calls, each of which reads what the last one wrote.
"""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import math

import torch
from torch import Tensor

from strategies.kernels.cpu.kernel import cpu_kernel
from strategies.kernels.kernel import by_rows

# As measured: matrices of a batch that fills a group, up to so many bytes each; and of so many
# entries in any batch.
_MOST_BYTES = 2**13
_FULL_BATCH = 16
_VERY_FEW_ENTRIES = 12**2


def _suits(matrix: Tensor, *rhs: Tensor) -> bool:
    *batch, m, n = matrix.shape
    if matrix.numel() == 0 or any(b.numel() == 0 for b in rhs):
        return False
    if m * n <= _VERY_FEW_ENTRIES:
        return True
    return math.prod(batch) >= _FULL_BATCH and m * n * matrix.element_size() <= _MOST_BYTES


def _by_columns(like: Tensor) -> Tensor:
    """Laid out as LAPACK's results are."""
    return by_rows(like.mT).mT


def _lu_results(solution: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    *batch, n, _ = matrix.shape
    pivots = torch.empty(*batch, n, dtype=torch.int32, device="cpu")
    info = torch.empty((*batch,), dtype=torch.int32, device="cpu")
    return solution, _by_columns(matrix), pivots, info


def _solve_flops(matrix: Tensor, rhs: Tensor) -> float:
    n, k = rhs.shape[-2:]
    return 2 / 3 * n**3 + 2 * n**2 * k


@cpu_kernel(suits=_suits, flops=_solve_flops)
def solve(matrix: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """X = A⁻¹B, and what `torch.linalg.lu_factor_ex` returns: packed LU, pivots, info.

    X is there if no matrix of the batch has a zero pivot. `info` is −1 where a column of U is much
    longer than that of A: see `kernels.cpu.condition`.

    Args:
        matrix: A, (..., n, n).
        rhs: B, (..., n, k).

    Example:
        >>> solve(torch.tensor([[0.0, 2.0], [4.0, 0.0]]), torch.tensor([[4.0], [8.0]]))[0]
        tensor([[2.],
                [2.]])
    """
    return _lu_results(by_rows(rhs), matrix)


@cpu_kernel(suits=_suits, flops=lambda matrix: 2 * matrix.shape[-1] ** 3)
def inv(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A⁻¹ of square A, (..., n, n), and the factors: as `solve`.

    A⁻¹ is laid out as PyTorch's, so that what follows in a program takes no longer. It is NaN where a pivot
    is zero, and of matrices computed beside such a one.

    Example:
        >>> inv(torch.tensor([[0.0, 2.0], [4.0, 0.0]]))[0]
        tensor([[0.0000, 0.2500],
                [0.5000, 0.0000]])
    """
    return _lu_results(_by_columns(matrix), matrix)


def _pinv_flops(matrix: Tensor) -> float:
    m, n = matrix.shape[-2:]
    return 5 * m * n**2 - 4 / 3 * n**3


@cpu_kernel(suits=_suits, flops=_pinv_flops)
def pinv(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A⁺ = R⁻¹Qᴴ, Q and R of tall A, (..., m, n) with m ≥ n.

    A⁺ is NaN where R has a zero on its diagonal, and of matrices computed beside such a one.

    Example:
        >>> pinv(torch.tensor([[3.0], [4.0]]))[0].round(decimals=4)
        tensor([[0.1200, 0.1600]])
    """
    *batch, m, n = matrix.shape
    return matrix.new_empty(*batch, n, m), by_rows(matrix), matrix.new_empty(*batch, n, n)


def _lstsq_flops(matrix: Tensor, rhs: Tensor) -> float:
    m, n = matrix.shape[-2:]
    return 2 * m * n**2 - 2 / 3 * n**3 + 4 * m * n * rhs.shape[-1]


@cpu_kernel(suits=_suits, flops=_lstsq_flops)
def lstsq(matrix: Tensor, rhs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The X that minimizes ‖A X − B‖, and what `torch.geqrf` returns: reflectors and their scales.

    X is there if no R of the batch has a zero on its diagonal. The last result is an estimate of the
    smallest singular value of each matrix, (...), zero if its R has one.

    Args:
        matrix: A, (..., m, n) with m ≥ n.
        rhs: B, (..., m, k).

    Example:
        >>> lstsq(torch.tensor([[3.0], [4.0]]), torch.tensor([[6.0], [8.0]]))[0].round(decimals=4)
        tensor([[2.]])
    """
    *batch, _, n = matrix.shape
    solution, scales = matrix.new_empty(*batch, n, rhs.shape[-1]), matrix.new_empty(*batch, n)
    smallest = torch.empty((*batch,), dtype=matrix.dtype.to_real(), device="cpu")
    return solution, _by_columns(matrix), scales, smallest
