"""Threads on cores of their own, so that times don't depend on where the system puts them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def pin(threads: int) -> None:
    """Lets this process, and those that it starts, use as many cores as threads, or raises ValueError."""
    os.environ.update(dict.fromkeys(_COUNTS, str(threads)))
    if not hasattr(os, "sched_setaffinity"):  # outside Linux
        return
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, choose(allowed, map(_core, allowed), threads))


def choose(processors: Sequence[int], cores: Iterable[str], threads: int) -> list[int]:
    """One processor of each core first, then the others, in their order.

    Example:
        >>> choose([0, 1, 2, 3], ["a", "a", "b", "b"], 3)
        [0, 2, 1]
    """
    if len(processors) < threads:
        raise ValueError(
            f"{threads} threads need as many processors; {len(processors)} may be used"
        )
    seen: dict[str, int] = {}
    for processor, core in zip(processors, cores, strict=True):
        seen.setdefault(core, processor)
    first = list(seen.values())
    return [*first, *(each for each in processors if each not in first)][:threads]


def _core(processor: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return path.read_text().strip() if path.exists() else str(processor)
