"""Peak memory of a call, above what was allocated before it."""

import itertools
import os
from collections.abc import Callable

import torch
from torch.autograd.profiler import profile

# The profiler's library announces every start and stop on stderr; it reads this when first used.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def peak_bytes(call: Callable[[], object], device: str | torch.device = "cpu") -> int:
    """The most bytes that `call` held at once above what existed when it began, its result included.

    On the CPU, the profiler's allocation events are summed; they leave out releases of older memory, and
    memory that libraries allocate by themselves (BLAS buffers, NumPy arrays). On CUDA the caching
    allocator keeps the peak; `call` runs twice there, since the first may load libraries.

    Example:
        >>> peak_bytes(lambda: torch.ones(1000, dtype=torch.float64))
        8000
    """
    device = torch.device(device)
    if device.type == "cuda":
        call()
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        kept = call()
        torch.cuda.synchronize(device)
        del kept
        return torch.cuda.max_memory_allocated(device) - before
    with profile(profile_memory=True) as recorded:
        kept = call()
    del kept
    if recorded.kineto_results is None:
        raise RuntimeError("the profiler recorded nothing; is another profiler running?")
    events = [e for e in recorded.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    changes: list[int] = [event.nbytes() for event in events]
    return max(itertools.accumulate(changes, initial=0))
