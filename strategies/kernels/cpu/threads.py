"""Run a kernel in as many threads as PyTorch uses."""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from strategies.kernels.cpu.library import ENTRY, Kernel

WORTH_A_THREAD = 2**17
"""Floating-point operations: some 30 µs."""

_IF_LOADED = getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE


def run(kernel: Kernel, block: int, groups: int, flops: float) -> None:
    """Call a kernel with the address of its task, in several threads to share the groups if that pays."""
    threads = min(torch.get_num_threads(), groups, 1 + int(flops / WORTH_A_THREAD))
    if threads == 1:
        kernel(block)
    elif (parallel := team()) is not None:
        parallel(kernel, block, threads, 0)
    else:
        others = [_pool().submit(kernel, block) for _ in range(threads - 1)]
        kernel(block)
        for other in others:
            other.result()


@functools.cache
def team() -> Callable[[Kernel, int, int, int], None] | None:
    """`GOMP_parallel` of the OpenMP runtime that torch has loaded; None where it has another.

    After an operation of torch its threads wait actively for more work. They take this work at
    once, and would keep a core from any other thread.
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
        parallel.argtypes = (ENTRY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        parallel.restype = None
        return parallel
    return None


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="backward-strategies")


_PROCESS = os.getpid()
os.register_at_fork(after_in_child=team.cache_clear)
os.register_at_fork(after_in_child=_pool.cache_clear)
