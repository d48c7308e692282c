"""Kernels for CUDA, in Triton: backwards of batches of small real matrices, one launch each.

The formulas are those of the kernels for the CPU. Several whole matrices are held in the registers of
a program, so that a backward reads its inputs once and writes its results once.
"""

# ruff: noqa: ARG001 - a kernel is declared with all that it reads

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence

from torch import Tensor

from strategies.kernels.kernel import Inputs, Kernel, Results, by_rows
from strategies.kernels.memory import materialized

__all__ = ["CUDAKernel", "inv", "lu", "solve"]

_LARGEST = 32
"""Rows and columns of a matrix that still fits into registers."""


class CUDAKernel(Kernel[*Inputs, Results]):
    """A program of `strategies.kernels.cuda.programs`, which has the name of the kernel.

    Args:
        allocate: as in `Kernel`.
        sides: of the matrices, as the program names them.
    """

    def __init__(
        self, allocate: Callable[[*Inputs], Results], sides: Callable[..., Sequence[int]]
    ) -> None:
        super().__init__(allocate, self._fits)
        self._sides = sides

    def _fits(self, *tensors: Tensor) -> bool:
        in_registers = all(0 < side <= _LARGEST for side in self._sides(*tensors))
        return in_registers and tensors[0].numel() > 0

    def _runs_on(self, tensor: Tensor) -> bool:
        return tensor.is_cuda and not tensor.is_complex() and _has_triton()

    def _run(self, read: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> None:
        # Triton is optional, and takes a second to import.
        from strategies.kernels.cuda.programs import launch

        launch(self.name, tuple(map(materialized, read)), written, self._sides(*read))


def _cuda_kernel(
    sides: Callable[..., Sequence[int]],
) -> Callable[[Callable[[*Inputs], Results]], CUDAKernel[*Inputs, Results]]:
    return lambda allocate: CUDAKernel(allocate, sides)


@_cuda_kernel(sides=lambda LU, *_: LU.shape[-2:])
def lu(LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
    """Ā from the cotangent of packed factors, (..., m, n)."""
    return by_rows(cotangent)


@_cuda_kernel(sides=lambda *read: read[2].shape[-2:])
def solve(LU: Tensor, pivots: Tensor, solution: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    """Ā, (..., n, n), and B̄, (..., n, k)."""
    return by_rows(LU), by_rows(cotangent)


@_cuda_kernel(sides=lambda LU, *_: LU.shape[-1:])
def inv(LU: Tensor, pivots: Tensor, cotangent: Tensor) -> Tensor:
    """Ā, (..., n, n)."""
    return by_rows(LU)


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
