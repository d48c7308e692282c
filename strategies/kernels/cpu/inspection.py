"""Row orders, determinants and ranks from the packed LU factors of small matrices.

`suits` says here for which sizes these loops alone are faster than library calls.
"""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import math

import torch
from torch import Tensor

from strategies.kernels.cpu.kernel import cpu_kernel

_MOST_ENTRIES = 64**2


def _has_few_entries(LU: Tensor, *_: Tensor) -> bool:
    return LU.shape[-2] * LU.shape[-1] <= _MOST_ENTRIES


def _empty(dtype: torch.dtype, *size: int) -> Tensor:
    return torch.empty(size, dtype=dtype)  # of a torch.Size it takes microseconds longer


@cpu_kernel(
    suits=lambda *_: True,
    flops=lambda pivots, order: pivots.shape[-1] + order.shape[-1],
    batch=lambda pivots, _: pivots.shape[:-1],
    one_by_one=True,
)
def inverse_order(pivots: Tensor, order: Tensor) -> tuple[()]:
    """Writes where the swaps of LAPACK pivots, (..., k), move each row: int64, (..., m)."""
    return ()


@cpu_kernel(flops=lambda LU, _: LU.shape[-1] ** 2, one_by_one=True)
def determinant(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Det A, (...), how many pivots are negligible, int64 (...), and `inverse_order`.

    Negligible are pivots of at most √ε times the largest entry of the factors.
    """
    *batch, n, _ = LU.shape
    det, count = _empty(LU.dtype, *batch), _empty(torch.int64, *batch)
    return det, count, _empty(torch.int64, *batch, n)


@cpu_kernel(flops=lambda LU, _: 2 * min(LU.shape[-2:]) + LU.shape[-2], one_by_one=True)
def pivot_may_be_zero(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    """Whether the last pivot may be roundoff or another is zero, (...), and `inverse_order`."""
    return _empty(torch.bool, *LU.shape[:-2]), _empty(torch.int64, *LU.shape[:-1])


@cpu_kernel(flops=lambda LU: 2 * min(LU.shape[-2:]) ** 2, one_by_one=True)
def last_may_be_roundoff(LU: Tensor) -> Tensor:
    """Whether the last pivot may be roundoff, by its row, its column and its leading block: (...)."""
    return _empty(torch.bool, *LU.shape[:-2])


@cpu_kernel(
    suits=_has_few_entries,
    flops=lambda LU, _: 2 * LU.shape[-2] * LU.shape[-1] * min(LU.shape[-2:]),
    one_by_one=True,
)
def rest_is_roundoff(LU: Tensor, ranks: Tensor) -> Tensor:
    """Whether what is left after some steps of elimination, int64 (...), is roundoff: (...)."""
    return _empty(torch.bool, *LU.shape[:-2])


def _canonicalize_flops(LU: Tensor, _: Tensor) -> float:
    m, n = LU.shape[-2:]
    return 2 * m * n * min(m, n) * math.log2(2 * min(m, n))


@cpu_kernel(suits=_has_few_entries, flops=_canonicalize_flops, one_by_one=True)
def canonicalize(LU: Tensor, pivots: Tensor) -> Tensor:
    """Overwrites rank-deficient factors and pivots by their canonical form; their ranks, int64 (...)."""
    return _empty(torch.int64, *LU.shape[:-2])
