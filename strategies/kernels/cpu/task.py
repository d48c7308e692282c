"""What a kernel is called with, and how it is run: `bs_task` of `csrc/include/api.h`, as 64-bit words.

    0       the next group of matrices that no thread has taken
    1       how many matrices there are
    2       how many of them make a group
    3       the status: zero, unless the kernel declined a matrix or had no memory
    4       how many groups are finished
    5, 6    two floating-point numbers, atol and rtol: singular values up to atol, or rtol times the
            largest, count as zero
    7 + 7i  of the i-th argument: address, three extents, three strides; one where there are fewer

A kernel that declines a matrix is not stable for it, or not the fastest way. Nothing that it has written is
to be read then.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from strategies.kernels.cpu import threads
from strategies.kernels.cpu.library import Kernel

STATUS_WORD = 3
FINISHED_WORD = 4
HEADER_WORDS = 7
ARGUMENT_WORDS = 7

NO_MEMORY = 2
"""The status of a kernel that had none for its scratch."""

_MISSING = {1: (1, 1), 2: (1,), 3: ()}

watchers: list[Callable[[float], None]] = []
"""Called with the floating-point operations of every call, which torch's own tools do not see."""


_MOST_IN_PACKS = 8
"""A multiple of the matrices that a pack holds, of any dtype."""


def in_packs(group: int, count: int, dtype: torch.dtype) -> int:
    """The size of a group that packs fill, which is no smaller, of so many matrices of a dtype.

    Groups of one pack are for threads to share a few; of many they take longer to take.
    """
    is_single_pack = count < 2 * _MOST_IN_PACKS and dtype.to_real() == torch.float64
    width = _MOST_IN_PACKS // 2 if is_single_pack else _MOST_IN_PACKS
    return -(-group // width) * width


def header(count: int, group: int, tolerances: tuple[float, float] = (0.0, 0.0)) -> list[int]:
    """The first words of the block for so many matrices, in groups of so many, with atol and rtol."""
    return [0, count, group, 0, 0, *struct.unpack("2q", struct.pack("2d", *tolerances))]


def run(kernel: Kernel, block: array[int], groups: int, flops: float, work: float) -> bool:
    """Run a kernel in as many threads as pay; whether it did all that it was asked for.

    The block is used once. Watchers hear of the floating-point operations; the work is what it costs in
    those, calls of LAPACK included.
    """
    threads.run(kernel, block.buffer_info()[0], groups, work)
    for watcher in watchers:
        watcher(flops)
    return block[FINISHED_WORD] == groups and not block[STATUS_WORD]


def task(count: int, group: int, tensors: Sequence[Tensor], *, is_batch: bool) -> array[int]:
    """The block for a batch, or for a single matrix.

    A thread takes a group of the matrices at once. Tensors have up to two dimensions for each matrix, after
    another one of a batch, and are not conjugated; they must live until the kernel returns.
    """
    words = header(count, group)
    for tensor in tensors:
        shape, strides = (*tensor.shape,), tensor.stride()
        if not is_batch:
            shape, strides = (1, *shape), (0, *strides)
        missing = _MISSING[len(shape)]
        words += (tensor.data_ptr(), *shape, *missing, *strides, *missing)
    return array("q", words)
