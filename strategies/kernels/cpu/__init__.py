"""Compiled loops: over batches of small matrices side by side, and over the blocks of one matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

from torch import Tensor

__all__ = ["has_blas", "launch", "watchers"]

watchers: list[Callable[[float], None]] = []
"""Called with the floating-point operations of every launch, which torch's own tools do not see."""


def launch(kernel: str, flops: float, batch: Sequence[int], *tensors: Tensor) -> None:
    """Call a kernel over a batch on the CPU.

    Args:
        kernel: the name of a function of `strategies.kernels.cpu.loops`; it writes to some of its
            arguments.
        flops: floating-point operations for one real matrix, leading terms.
        batch: the batch dimensions, with which every tensor begins.
        tensors: the arguments, those that are written to contiguous.
    """
    run, kernels = _compiler()
    run(getattr(kernels, kernel), flops, batch, *tensors)


@functools.cache
def has_blas() -> bool:
    """Whether kernels can call the BLAS of torch; those that do are not to be launched otherwise."""
    from strategies.kernels.cpu.blas import IS_AVAILABLE

    return IS_AVAILABLE


@functools.cache
def _compiler() -> tuple[Callable[..., None], ModuleType]:
    # It takes a second to import: who never uses it does not wait for it.
    from strategies.kernels.cpu import loops as kernels
    from strategies.kernels.cpu.threads import run

    return run, kernels
