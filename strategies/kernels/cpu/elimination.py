"""The reverse of the elimination of matrices of any size, block by block."""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads
from __future__ import annotations

import functools

from torch import Tensor

from strategies.kernels.cpu.backward import reverse_flops
from strategies.kernels.cpu.kernel import cpu_kernel


@functools.cache
def _has_blas() -> bool:
    from strategies.kernels.cpu.blas import IS_AVAILABLE

    return IS_AVAILABLE


@cpu_kernel(suits=lambda *_: _has_blas(), flops=reverse_flops, one_by_one=True)
def reverse_elimination(LU_conj: Tensor, inverse_order: Tensor, bar: Tensor) -> tuple[()]:
    """Overwrites the cotangent of packed factors by the gradient of A, (..., m, n), contiguous.

    The factors are given conjugated, with their columns one after the other.
    """
    return ()
