"""Launch a Triton kernel over a batch."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor

from strategies.kernels.cuda import backward, forward

_ROWS = 128
"""Of matrices in a program: one for each thread of four warps."""


def launch(
    kernel: str,
    tensors: Sequence[Tensor],
    count: int,
    sides: tuple[int, ...],
    numbers: Sequence[float] = (),
) -> None:
    """Launch a kernel, as "forward.lu", on the current stream of the device of the tensors, contiguous.

    Sides are those of the matrices, as the kernel names them after `count`; first their rows. The numbers
    follow the tensors.
    """
    run, rows, matrices = _made(kernel, sides)
    grid = (-(-count // matrices),)
    with torch.cuda.device_of(tensors[0]):  # type: ignore[no-untyped-call]
        run[grid](*tensors, *numbers, count, *sides, rows, matrices)


@functools.cache
def _made(kernel: str, sides: tuple[int, ...]) -> tuple[Any, int, int]:
    """The kernel, padded rows of a matrix, and matrices that are done together."""
    module, _, name = kernel.partition(".")
    rows = triton.next_power_of_2(sides[0])
    return vars({"forward": forward, "backward": backward}[module])[name], rows, _ROWS // rows
