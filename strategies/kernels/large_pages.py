"""Memory for results that are larger than a cache."""

import ctypes
import functools
import mmap
from collections.abc import Callable

import torch
from torch import Tensor

LARGE = 2**22
"""Bytes from which on NumPy asks for large pages, too."""


def uninitialized(like: Tensor, *shape: int) -> Tensor:
    """A tensor of that shape, by rows, with the dtype and device of another, `on_large_pages`."""
    return on_large_pages(torch.empty(shape, dtype=like.dtype, device=like.device))


def on_large_pages(tensor: Tensor) -> Tensor:
    """The tensor, which has not been touched yet.

    Linux is asked to back large ones on the CPU by large pages. Touching 32 MB for the first time then
    takes a quarter of the time, which is most of what writing a gradient of low rank takes.
    """
    advise = _madvise() if tensor.is_cpu and tensor.nbytes >= LARGE else None
    if advise is not None:
        first = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        # No more than a hint: what comes back does not matter.
        advise(first, tensor.data_ptr() + tensor.nbytes - first, mmap.MADV_HUGEPAGE)
    return tensor


@functools.cache
def _madvise() -> Callable[[int, int, int], int] | None:
    """The function of the C library; None where there are no large pages to ask for."""
    try:
        found = ctypes.CDLL(None).madvise
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return found if hasattr(mmap, "MADV_HUGEPAGE") else None
