"""Backwards of small matrices: one pass from what the forward kept to the gradient."""

# ruff: noqa: ARG001, ARG005 - a kernel is declared with all that it reads
from __future__ import annotations

import functools

from torch import Tensor

from strategies.kernels.cpu.kernel import cpu_kernel
from strategies.kernels.kernel import by_rows

# Columns from which on library calls are faster at any batch, as measured.
_LARGEST = 64
_LARGEST_WITH_FEW_RIGHT_HAND_SIDES = 16


def _is_small(matrix: Tensor, *_: Tensor, largest: int = _LARGEST) -> bool:
    m, n = matrix.shape[-2:]
    return min(m, n) <= largest and m * n <= _LARGEST**2 and matrix.numel() > 0


def reverse_flops(LU: Tensor, *_: Tensor) -> float:
    """Of reversing the elimination of a real matrix, leading terms: twice the elimination's."""
    small, large = sorted(LU.shape[-2:])
    return 2 * (small**2 * large - small**3 / 3)


@cpu_kernel(suits=_is_small, flops=reverse_flops)
def lu(LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
    """Ā from the cotangent of packed factors, (..., m, n)."""
    return by_rows(cotangent)


@cpu_kernel(
    suits=functools.partial(_is_small, largest=_LARGEST_WITH_FEW_RIGHT_HAND_SIDES),
    flops=lambda LU, _, solution, *__: 4 * LU.shape[-1] ** 2 * solution.shape[-1],
)
def solve(LU: Tensor, pivots: Tensor, solution: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    """Ā, (..., n, n), and B̄, (..., n, k)."""
    return by_rows(LU), by_rows(cotangent)


@cpu_kernel(suits=_is_small, flops=lambda LU, *_: 4 * LU.shape[-1] ** 3)
def inv(LU: Tensor, pivots: Tensor, cotangent: Tensor) -> Tensor:
    """Ā, (..., n, n)."""
    return by_rows(cotangent)


@cpu_kernel(suits=_is_small, flops=lambda LU, *_: 4 / 3 * LU.shape[-1] ** 3)
def det(LU: Tensor, inverse_order: Tensor, scale: Tensor) -> Tensor:
    """A number for each matrix, (...), times A⁻ᴴ, (..., n, n)."""
    return by_rows(LU)


@cpu_kernel(
    suits=_is_small,
    flops=lambda Q, R, _: 6 * (Q.shape[-2] + Q.shape[-1]) * Q.shape[-1] ** 2,
)
def pinv(Q: Tensor, R: Tensor, cotangent: Tensor) -> Tensor:
    """Ā, (..., m, n), of tall A = Q R of full rank."""
    return by_rows(Q)


def _few_columns(R: Tensor, matrix: Tensor, *_: Tensor) -> bool:
    return _is_small(matrix, largest=_LARGEST_WITH_FEW_RIGHT_HAND_SIDES)


def _lstsq_flops(R: Tensor, matrix: Tensor, rhs: Tensor, *_: Tensor) -> float:
    m, n = matrix.shape[-2:]
    return (12 * m * n + 4 * n**2) * rhs.shape[-1]


@cpu_kernel(suits=_few_columns, flops=_lstsq_flops)
def lstsq(
    R: Tensor, matrix: Tensor, rhs: Tensor, solution: Tensor, cotangent: Tensor
) -> tuple[Tensor, Tensor]:
    """Ā, (..., m, n), and B̄, (..., m, k), of tall A = Q R of full rank."""
    return by_rows(matrix), by_rows(rhs)
