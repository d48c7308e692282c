"""How near to singular factors are, and how much elimination grew: see `strategies.factors.condition`.

Factors are given as their columns, one after the other: U or R transposed, and contiguous.
"""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import torch
from torch import Tensor

from strategies.kernels.cpu.kernel import cpu_kernel


@cpu_kernel(flops=lambda columns: 2 * columns.shape[-2] ** 2, one_by_one=True)
def smallest_of_triangle(columns: Tensor) -> Tensor:
    """An estimate of σ_n, (...), of R, (..., n, n), or (..., n, m) with reflectors below it.

    Example:
        >>> smallest_of_triangle(torch.tensor([[8.0, 0.0], [0.0, 0.02]])).round(decimals=4)
        tensor(0.0200)
    """
    return torch.empty((*columns.shape[:-2],), dtype=columns.dtype.to_real(), device="cpu")


@cpu_kernel(flops=lambda columns: 4 * columns.shape[-1] ** 2, one_by_one=True)
def smallest_of_product(columns: Tensor) -> Tensor:
    """An estimate of σ_n, (...), of the product L U of packed factors, (..., n, n)."""
    return torch.empty((*columns.shape[:-2],), dtype=columns.dtype.to_real(), device="cpu")


@cpu_kernel(flops=lambda matrix, _: 3 * matrix.shape[-1] ** 2, one_by_one=True)
def has_grown(matrix: Tensor, columns: Tensor) -> Tensor:
    """Whether a column of U is too long beside that of A, (..., n, n) and contiguous: bool, (...)."""
    return torch.empty((*matrix.shape[:-2],), dtype=torch.bool, device="cpu")
