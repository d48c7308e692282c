"""Row orders, determinants and doubts about the rank from packed LU factors."""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import torch
from torch import Tensor

from strategies.kernels.cpu.kernel import cpu_kernel


def _empty(dtype: torch.dtype, *size: int) -> Tensor:
    # Of a torch.Size it takes microseconds longer.
    return torch.empty(size, dtype=dtype, device="cpu")


@cpu_kernel(
    suits=lambda *_: True,
    flops=lambda pivots, order: pivots.shape[-1] + order.shape[-1],
    batch=lambda pivots, _: pivots.shape[:-1],
    one_by_one=True,
)
def inverse_order(pivots: Tensor, order: Tensor) -> tuple[()]:
    """Writes where the swaps of LAPACK pivots, (..., k), move each row: int64, (..., m)."""
    return ()


@cpu_kernel(flops=lambda A, *_: 6 * A.shape[-1] ** 2, one_by_one=True)
def determinant(A: Tensor, LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Det A as `strategies.factors.determinant` has it: mantissa, (...), notes, and `inverse_order`.

    The notes are int64, (..., 3): the exponent, the number of negligible pivots, and how hard A is.
    """
    *batch, n, _ = LU.shape
    mantissa, notes = _empty(LU.dtype, *batch), _empty(torch.int64, *batch, 3)
    return mantissa, notes, _empty(torch.int64, *batch, n)


@cpu_kernel(flops=lambda LU, _: min(LU.shape[-2:]) ** 2 + LU.shape[-2], one_by_one=True)
def may_be_deficient(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor]:
    """Whether some pivot may be roundoff or is not finite, (...), and `inverse_order`."""
    return _empty(torch.bool, *LU.shape[:-2]), _empty(torch.int64, *LU.shape[:-1])


@cpu_kernel(flops=lambda LU: 2 * min(LU.shape[-2:]) ** 2, one_by_one=True)
def last_may_be_roundoff(LU: Tensor) -> Tensor:
    """Whether the last pivot may be roundoff: (...)."""
    return _empty(torch.bool, *LU.shape[:-2])
