"""What a loop is called with: one block of 64-bit words, as C sees it.

    0       the next group of matrices that no thread has taken
    1       how many matrices there are
    2       how many of them make a group
    3       what a loop reports, zero at first: see `strategies.kernels.cpu.fused`
    4       how many groups are finished
    5 + 7i  of the i-th argument: address, three extents, three strides; one where there are fewer

A loop has the address of such a block for its one parameter, typed as a pointer to the numbers that
the matrices hold, so that the same loop is compiled for each dtype. Any number of threads may run it
on the same block; each takes one group after the other. `strategies.kernels.cpu.loops.arguments`
reads the block.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from torch import Tensor

REPORT_WORD = 3
FINISHED_WORD = 4
HEADER_WORDS = 5
ARGUMENT_WORDS = 7

_MISSING = {1: (1, 1), 2: (1,), 3: ()}


def header(count: int, group: int) -> list[int]:
    """The first words of the block for so many matrices, in groups of so many."""
    return [0, count, group, 0, 0]


def is_finished(block: array[int], groups: int) -> bool:
    """Whether a loop has come to the end of every group.

    It has not where it raised an exception, which no caller sees: for want of memory, for one.
    """
    return block[FINISHED_WORD] == groups


def task(count: int, group: int, tensors: Sequence[Tensor], *, is_batch: bool) -> array[int]:
    """The block for a batch, or for a single matrix.

    Args:
        count: matrices.
        group: matrices side by side.
        tensors: with up to two dimensions for each matrix, not conjugated; they must live until the
            loop returns.
        is_batch: whether they have another dimension before those, of matrices.
    """
    words = header(count, group)
    for tensor in tensors:
        shape, strides = (*tensor.shape,), tensor.stride()
        if not is_batch:
            shape, strides = (1, *shape), (0, *strides)
        missing = _MISSING[len(shape)]
        words += (tensor.data_ptr(), *shape, *missing, *strides, *missing)
    return array("q", words)
