"""Run a kernel over a batch: compiled for its dtypes, in as many threads as torch uses."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from strategies.lanes import watchers

__all__ = ["launch"]

_LANES = 16
"""Matrices side by side. Measured: 8 leave half the speed to loops, 64 leave the first-level cache."""

_WORTH_A_THREAD = 2**19
"""Floating-point operations: some 100 µs. To hand them to another thread takes tens of µs."""

Kernel = Callable[..., None]


def launch(kernel: Kernel, flops: float, *tensors: Tensor) -> None:
    """Call the kernel with the tensors as arrays, the batch split between threads.

    Args:
        kernel: one of `strategies.lanes.kernels`; it writes to some of its arguments.
        flops: floating-point operations for one real matrix, leading terms.
        tensors: on the CPU, with one and the same batch dimension in front, of any strides.
    """
    arrays = [tensor.numpy(force=True) for tensor in tensors]
    count = len(arrays[0])
    compiled = _compiled(kernel, tuple((array.dtype, array.ndim) for array in arrays))
    total = count * flops * (4 if tensors[0].is_complex() else 1)
    for watcher in watchers:
        watcher(total)
    pieces = min(torch.get_num_threads(), 1 + int(total / _WORTH_A_THREAD))
    lanes = min(count, _LANES)
    length = -(-count // (pieces * lanes)) * lanes
    starts = range(length, count, length)
    others = [
        _threads().submit(compiled, lanes, *(array[start : start + length] for array in arrays))
        for start in starts
    ]
    compiled(lanes, *(array[:length] for array in arrays))
    for other in others:
        other.result()


@functools.cache
def _compiled(kernel: Kernel, types: tuple[tuple[np.dtype[Any], int], ...]) -> Kernel:
    """Machine code for these dtypes; from the compiler's cache on disk, where there can be one."""
    signature = [numba.types.Array(numba.from_dtype(dtype), ndim, "A") for dtype, ndim in types]
    options: Any = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        compiled: Kernel = numba.njit(numba.void(numba.int64, *signature), cache=True, **options)(
            kernel
        )
    except RuntimeError:  # no folder can be written to
        compiled = numba.njit(numba.void(numba.int64, *signature), **options)(kernel)
    return compiled


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="backward-strategies")


# A child process has none of its parent's threads.
os.register_at_fork(after_in_child=_threads.cache_clear)
