"""Run a kernel over a batch: compiled for its dtype, in as many threads as torch uses."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import torch
from torch import Tensor

from strategies.kernels.cpu import watchers
from strategies.kernels.cpu.task import task

__all__ = ["run"]

_LANE_BYTES = 128
"""Of one entry of all matrices of a group, at least: with less, loops cost more than they do."""

_GROUP_BYTES = 2**15
"""Of a group, up to which it has more lanes: the first-level cache holds it."""

_MOST_LANES = 64

_WORTH_A_THREAD = 2**17
"""Floating-point operations: some 30 µs."""

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""Releases the interpreter's lock while it runs."""

_IF_LOADED = getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE

Kernel = Callable[[Any], None]
_Entry = Any  # an instance of _ENTRY


def run(kernel: Kernel, flops: float, batch: Sequence[int], *tensors: Tensor) -> None:
    """Call a kernel over a batch, split between threads.

    Args:
        kernel: a function of `strategies.kernels.cpu.loops`.
        flops: as in `strategies.kernels.cpu.launch`.
        batch: as there.
        tensors: as there.
    """
    count = math.prod(batch)
    if count == 0:
        return
    # Kept in a list until the kernel returns: it has their addresses only.
    arguments = [_with_one_batch_dimension(tensor, len(batch), count) for tensor in tensors]
    dtypes = (t.dtype for t in arguments if t.is_floating_point() or t.is_complex())
    dtype = next(dtypes, torch.float64)  # a kernel of integers alone is compiled once
    total = count * flops * (4 if dtype.is_complex else 1)
    for watcher in watchers:
        watcher(total)
    groups = -(-count // _lanes(kernel, arguments[0], count))
    group = -(-count // groups)  # so that the last one is nearly as full as the others
    block = task(count, group, arguments, is_batch=bool(batch))
    threads = min(torch.get_num_threads(), groups, 1 + int(total / _WORTH_A_THREAD))
    _call(_compiled(kernel, dtype), block.buffer_info()[0], threads)


def _with_one_batch_dimension(tensor: Tensor, dimensions: int, count: int) -> Tensor:
    """Or with none, as given."""
    # Memory alone is read: what torch only notes beside it must be in it.
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor.reshape(count, *tensor.shape[dimensions:]) if dimensions > 1 else tensor


def _lanes(kernel: Kernel, tensor: Tensor, count: int) -> int:
    """How many matrices to make a group."""
    size = tensor.element_size()
    least = 1 if getattr(kernel, "one_by_one", False) else _LANE_BYTES // size
    of_one = size * max(tensor.numel() // count, 1)
    return min(_MOST_LANES, max(least, _GROUP_BYTES // of_one))


@functools.cache
def _compiled(kernel: Kernel, dtype: torch.dtype) -> _Entry:
    """Machine code for this dtype; from the compiler's cache on disk, where there can be one."""
    pointer: Any = numba.types.CPointer
    signature = numba.void(pointer(numba.from_dtype(torch.empty(0, dtype=dtype).numpy().dtype)))
    options: Any = {"fastmath": {"contract"}, "error_model": "numpy"}
    compiled: Any
    try:
        compiled = numba.cfunc(signature, cache=True, **options)(kernel)
    except RuntimeError:  # no folder can be written to
        compiled = numba.cfunc(signature, **options)(kernel)
    entry: _Entry = _ENTRY(compiled.address)
    entry.code = compiled  # lives as long
    return entry


def _call(entry: _Entry, block: int, threads: int) -> None:
    if threads == 1:
        entry(block)
    elif (team := _team()) is not None:
        team(entry, block, threads, 0)
    else:
        others = [_pool().submit(entry, block) for _ in range(threads - 1)]
        entry(block)
        for other in others:
            other.result()


@functools.cache
def _team() -> Callable[[_Entry, int, int, int], None] | None:
    """`GOMP_parallel` of the OpenMP runtime that torch has loaded; None where it has another.

    After an operation of torch its threads wait actively for more work. They take ours at once,
    and would keep a core from any other thread.
    """
    if os.getpid() != _PROCESS:
        return None  # a forked process has none of its parent's threads, and OpenMP would wait
    libraries = Path(torch.__file__).parent
    bundled = [*libraries.glob("lib/libgomp*"), *libraries.parent.glob("torch.libs/libgomp*")]
    for library in (*map(str, bundled), "libgomp.so.1"):
        try:
            parallel = ctypes.CDLL(library, mode=_IF_LOADED).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes = (_ENTRY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        parallel.restype = None
        return parallel
    return None


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="backward-strategies")


_PROCESS = os.getpid()
os.register_at_fork(after_in_child=_team.cache_clear)
os.register_at_fork(after_in_child=_pool.cache_clear)
