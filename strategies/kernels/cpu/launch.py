"""A kernel on tensors of given sizes and strides: nothing is left to be found out but addresses."""

import ctypes
import math
from array import array
from collections.abc import Sequence

from torch import Tensor

from strategies.kernels.cpu.library import kernel
from strategies.kernels.cpu.problem import Problem
from strategies.kernels.cpu.task import ARGUMENT_WORDS, HEADER_WORDS, header, in_packs, run
from strategies.kernels.memory import address

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides of a tensor; for a kernel, always of three dimensions."""

_MOST_GROUPS = 64
"""Into which a batch is divided for threads to take."""

_FLOPS_OF_CALLS = 2**12
"""What calling LAPACK for a matrix costs, in floating-point operations."""


class Launch:
    """A kernel, with the block of its task but for the addresses.

    Attributes:
        address: of its machine code.
        block: of the task.
        groups: into which the batch is divided for threads to take.
        work: what it costs, in floating-point operations.
    """

    def __init__(
        self,
        name: str,
        problem: Problem,
        arguments: Sequence[Layout],
        flops: float,
        tolerances: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        count = problem.matrices
        self._kernel, self._flops = kernel(name, problem.dtype, problem.n), count * flops
        self.address = ctypes.cast(self._kernel, ctypes.c_void_p).value
        self.work = self._flops + count * _FLOPS_OF_CALLS
        group = math.ceil(count / _MOST_GROUPS)
        if name.endswith("_across"):
            group = in_packs(group, count, problem.dtype)
        self.groups = math.ceil(count / group)
        words = header(count, group, tolerances)
        for size, stride in arguments:
            words += (0, *size, *stride)
        self.block = array("q", words)

    def __call__(
        self,
        first: Sequence[Tensor],
        offsets: Sequence[int],
        last: Sequence[Tensor | None],
        kept: tuple[Tensor, ...],
    ) -> bool:
        """Whether the kernel did it, of tensors, parts of what is kept, and more tensors or none.

        They live until it returns.
        """
        block = self.block[:]
        base = address(kept[-1]) if offsets else 0
        addresses = [
            *map(address, first),
            *[base + offset for offset in offsets],
            *[0 if tensor is None else address(tensor) for tensor in last],
        ]
        for i, each in enumerate(addresses):
            block[HEADER_WORDS + ARGUMENT_WORDS * i] = each
        return run(self._kernel, block, self.groups, self._flops, self.work)
