"""The reverse of Cholesky factorizations: of small ones in groups, of large ones block by block."""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import functools

from torch import Tensor

from strategies.allocation import uninitialized
from strategies.kernels.cpu.kernel import cpu_kernel
from strategies.kernels.kernel import by_rows

_LARGEST = 32
"""Columns from which on the blocks are faster at any batch, as measured."""


@functools.cache
def _has_blas() -> bool:
    from strategies.kernels.cpu.blas import IS_AVAILABLE

    return IS_AVAILABLE


def _flops(L: Tensor, *_: Tensor) -> float:
    """Of a real matrix, leading terms: twice the factorization's."""
    return 2 / 3 * L.shape[-1] ** 3


@cpu_kernel(suits=lambda L, _: 0 < L.shape[-1] <= _LARGEST and L.numel() > 0, flops=_flops)
def small(L: Tensor, cotangent: Tensor) -> Tensor:
    """The Hermitian gradient of A from the cotangent of its factor, (..., n, n)."""
    return by_rows(cotangent)


@cpu_kernel(suits=lambda *_: _has_blas(), flops=_flops, one_by_one=True)
def blocked(L: Tensor, cotangent: Tensor) -> Tensor:
    """The same, of factors that have their columns one after the other."""
    return uninitialized(cotangent, *cotangent.shape)
