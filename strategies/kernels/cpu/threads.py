"""Run a kernel in as many threads as PyTorch uses."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import torch

from strategies.kernels.cpu.library import Kernel
from strategies.kernels.cpu.openmp import team

WORTH_A_THREAD = 2**17
"""Floating-point operations: some 30 µs."""


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
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="backward-strategies")


os.register_at_fork(after_in_child=_pool.cache_clear)
