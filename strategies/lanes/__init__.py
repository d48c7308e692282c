"""Compiled loops over batches of small matrices, a few matrices side by side in each vector."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType

from torch import Tensor

__all__ = ["launch", "watchers"]

watchers: list[Callable[[float], None]] = []
"""Called with the floating-point operations of every launch, which torch's own tools do not see."""


def launch(kernel: str, flops: float, batch: Sequence[int], *tensors: Tensor) -> None:
    """Call a kernel over a batch on the CPU.

    Args:
        kernel: the name of a function of `strategies.lanes.kernels`; it writes to some of its
            arguments.
        flops: floating-point operations for one real matrix, leading terms.
        batch: the batch dimensions, with which every tensor begins.
        tensors: the arguments, those that are written to contiguous.
    """
    run, kernels = _compiler()
    run(getattr(kernels, kernel), flops, batch, *tensors)


@functools.cache
def _compiler() -> tuple[Callable[..., None], ModuleType]:
    # It takes a second to import: who never uses it does not wait for it.
    from strategies.lanes import kernels
    from strategies.lanes.threads import run

    return run, kernels
