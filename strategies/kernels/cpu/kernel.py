"""What a kernel for the CPU is: a loop over a batch of matrices, and what it costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from strategies.kernels.cpu import compilation, threads
from strategies.kernels.cpu.task import is_finished, task
from strategies.kernels.kernel import Inputs, Kernel, Results
from strategies.kernels.memory import materialized

__all__ = ["DTYPES", "IS_COMPILED", "CPUKernel", "cpu_kernel", "watchers"]

watchers: list[Callable[[float], None]] = []
"""Called with the floating-point operations of every call, which torch's own tools do not see."""

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
"""Of the matrices that loops are compiled for."""

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
"""Where Numba is told to compile nothing, no kernel supports anything."""

_ENTRY_BYTES = 128
"""Least size of one entry of all matrices of a group: with less, loop overhead dominates."""

_GROUP_BYTES = 2**15
"""A group gets more matrices up to this size, which the first-level cache holds."""

_MOST_MATRICES = 64


class CPUKernel(Kernel[*Inputs, Results]):
    """A loop over a batch of matrices, in as many threads as torch uses.

    The loop is the function of the same name in the module of the same name in
    `strategies.kernels.cpu.loops`. Its arguments are the inputs, then the results. It is compiled for
    a dtype when it is first called with it: see `strategies.kernels.cpu.compilation`.

    Args:
        allocate: as in `Kernel`; a loop that overwrites some of its inputs may have no results.
        suits: as in `Kernel`, for tensors on the CPU.
        flops: floating-point operations for one real matrix, leading terms.
        batch: the batch dimensions. Every tensor begins with them, or there is only one.
        one_by_one: whether the loop takes matrix after matrix, so that one is a group.
    """

    def __init__(
        self,
        allocate: Callable[[*Inputs], Results],
        suits: Callable[..., bool],
        flops: Callable[..., float],
        batch: Callable[..., Sequence[int]],
        one_by_one: bool,
    ) -> None:
        super().__init__(allocate, suits)
        self._flops, self._batch, self._one_by_one = flops, batch, one_by_one
        self._loop = f"{allocate.__module__.rpartition('.')[2]}.{self.name}"

    def _runs_on(self, tensor: Tensor) -> bool:
        return IS_COMPILED and tensor.is_cpu

    def _run(self, read: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> None:
        batch = self._batch(*read)
        count = math.prod(batch)
        if count == 0:
            return
        # Kept in a list until the loop returns, which has their addresses only.
        arguments = [*map(materialized, read), *written]
        if len(batch) > 1:
            arguments = [t.reshape(count, *t.shape[len(batch) :]) for t in arguments]
        dtypes = (t.dtype for t in arguments if t.is_floating_point() or t.is_complex())
        dtype = next(dtypes, torch.float64)  # a loop over integers alone is compiled once
        flops = count * self._flops(*read) * (4 if dtype.is_complex else 1)
        for watcher in watchers:
            watcher(flops)
        groups = -(-count // self._group_size(arguments[0], count))
        group = -(-count // groups)  # so that the last one is nearly as full as the others
        block = task(count, group, arguments, is_batch=bool(batch))
        threads.run(compilation.entry(self._loop, dtype), block.buffer_info()[0], groups, flops)
        if not is_finished(block, groups):
            raise RuntimeError(
                f"the kernel {self._loop} did not come to its end, most likely for want of memory"
            )

    def _group_size(self, tensor: Tensor, count: int) -> int:
        """How many matrices make a group, at most."""
        size = tensor.element_size()
        least = 1 if self._one_by_one else _ENTRY_BYTES // size
        of_one = size * max(tensor.numel() // count, 1)
        return min(_MOST_MATRICES, max(least, _GROUP_BYTES // of_one))


def cpu_kernel(
    *,
    flops: Callable[..., float],
    suits: Callable[..., bool] = lambda first, *_: first.numel() > 0,
    batch: Callable[..., Sequence[int]] = lambda first, *_: first.shape[:-2],
    one_by_one: bool = False,
) -> Callable[[Callable[[*Inputs], Results]], CPUKernel[*Inputs, Results]]:
    """Makes a function that allocates results into the `CPUKernel` that fills them."""
    return lambda allocate: CPUKernel(allocate, suits, flops, batch, one_by_one)
