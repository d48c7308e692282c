"""Factors of small matrices on the CPU and what is solved with them, in one compiled pass.

A batched library call goes from matrix to matrix, and to form an inverse there are two or three such
calls, each of which reads what the last one wrote.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.kernels.cpu import launch

__all__ = [
    "LUSolution",
    "LeastSquaresSolution",
    "QRInverse",
    "inverse",
    "least_squares",
    "pseudo_inverse",
    "solve",
    "takes",
]

# As measured: matrices of a batch that fill a group, of as many bytes; and entries of any.
_MOST_BYTES = 2**13
_FULL_BATCH = 16
_VERY_FEW_ENTRIES = 12**2


class LUSolution(NamedTuple):
    """A = P L U of square matrices.

    Attributes:
        solution: what was solved for, if no matrix of the batch has a zero pivot.
        LU: packed factors, (..., n, n), by columns.
        pivots: of LAPACK, int32 (..., n).
        info: the position of the first zero pivot from 1 on, else 0; int32 (...).
    """

    solution: Tensor
    LU: Tensor
    pivots: Tensor
    info: Tensor


class QRInverse(NamedTuple):
    """A = Q R of tall matrices, and R⁻¹Qᴴ if no diagonal entry of the batch is zero."""

    pseudo_inverse: Tensor
    Q: Tensor
    R: Tensor


class LeastSquaresSolution(NamedTuple):
    """`torch.geqrf` of tall matrices, and what was solved for if no diagonal entry is zero."""

    solution: Tensor
    reflectors: Tensor
    scales: Tensor


def takes(matrix: Tensor) -> bool:
    """Whether the functions below are faster than library calls for such a batch, (..., m, n)."""
    *batch, m, n = matrix.shape
    if matrix.device.type != "cpu" or matrix.numel() == 0:
        return False
    if m * n <= _VERY_FEW_ENTRIES:
        return True
    return math.prod(batch) >= _FULL_BATCH and m * n * matrix.element_size() <= _MOST_BYTES


def _by_columns(like: Tensor) -> Tensor:
    """Laid out as LAPACK's results are."""
    return torch.empty_like(like.mT, memory_format=torch.contiguous_format).mT


def solve(matrix: Tensor, rhs: Tensor) -> LUSolution:
    """X with A X = B.

    Args:
        matrix: A, (..., n, n).
        rhs: B, (..., n, k), with k ≥ 1.

    Example:
        >>> solve(torch.tensor([[0.0, 2.0], [4.0, 0.0]]), torch.tensor([[4.0], [8.0]])).solution
        tensor([[2.],
                [2.]])
    """
    *batch, n, k = rhs.shape
    X = torch.empty_like(rhs, memory_format=torch.contiguous_format)
    LU, pivots, info = _lu_results(matrix)
    flops = 2 / 3 * n**3 + 2 * n**2 * k
    launch("solve_square", flops, batch, matrix, rhs, LU, pivots, info, X)
    return LUSolution(X, LU, pivots, info.squeeze(-1))


def inverse(matrix: Tensor) -> LUSolution:
    """A⁻¹ of square matrices.

    Args:
        matrix: A, (..., n, n).

    Example:
        >>> inverse(torch.tensor([[0.0, 2.0], [4.0, 0.0]])).solution
        tensor([[0.0000, 0.2500],
                [0.5000, 0.0000]])
    """
    *batch, n, _ = matrix.shape
    result = torch.empty_like(matrix, memory_format=torch.contiguous_format)
    LU, pivots, info = _lu_results(matrix)
    launch("invert", 2 * n**3, batch, matrix, LU, pivots, info, result)
    return LUSolution(result, LU, pivots, info.squeeze(-1))


def _lu_results(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    pivots = torch.empty(matrix.shape[:-1], dtype=torch.int32)
    info = torch.empty(*matrix.shape[:-2], 1, dtype=torch.int32)
    return _by_columns(matrix), pivots, info


def pseudo_inverse(matrix: Tensor) -> QRInverse:
    """A⁺ = R⁻¹Qᴴ of tall matrices of full rank.

    Args:
        matrix: A, (..., m, n), with m ≥ n.

    Example:
        >>> pseudo_inverse(torch.tensor([[3.0], [4.0]])).pseudo_inverse.round(decimals=4)
        tensor([[0.1200, 0.1600]])
    """
    *batch, m, n = matrix.shape
    Q = torch.empty_like(matrix, memory_format=torch.contiguous_format)
    R, result = matrix.new_empty(*batch, n, n), matrix.new_empty(*batch, n, m)
    launch("pseudo_invert", 5 * m * n**2 - 4 / 3 * n**3, batch, matrix, Q, R, result)
    return QRInverse(result, Q, R)


def least_squares(matrix: Tensor, rhs: Tensor) -> LeastSquaresSolution:
    """The X that minimizes ‖A X − B‖, A tall and of full rank.

    Args:
        matrix: A, (..., m, n), with m ≥ n.
        rhs: B, (..., m, k), with k ≥ 1.

    Example:
        >>> A, B = torch.tensor([[3.0], [4.0]]), torch.tensor([[6.0], [8.0]])
        >>> least_squares(A, B).solution.round(decimals=4)
        tensor([[2.]])
    """
    *batch, m, n = matrix.shape
    k = rhs.shape[-1]
    reflectors, scales = _by_columns(matrix), matrix.new_empty(*batch, n)
    X = matrix.new_empty(*batch, n, k)
    flops = 2 * m * n**2 - 2 / 3 * n**3 + 4 * m * n * k
    launch("solve_least_squares", flops, batch, matrix, rhs, reflectors, scales, X)
    return LeastSquaresSolution(X, reflectors, scales)
