"""Whether a machine is quiet enough for measurements to mean something."""

import hashlib
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import torch

from strategies.measuring.clock import sampler
from strategies.measuring.machine import Machine

NOISY = 1.15
"""From here on measurements take longer until they are clear."""

VERY_NOISY = 1.5
"""From here on they say little."""

BUSY = 1.35
"""A contention from which on threads wait for each other, and times of several say little."""

_PAIRS = 60

_PROBE_SECONDS = 0.012
"""The time is that of a few slices which schedulers give to a process."""

_BLOCK = bytes(2**18)


def timing_noise() -> float:
    """By what factor the same work, done twice in a row, differs in time; 1 is a quiet machine.

    That is the 90th percentile of the ratio over its 10th, as a geometric mean for one side.
    """
    matrix = torch.ones(128, 128)
    sample = sampler(lambda: matrix @ matrix)
    ratios = sorted(sample() / sample() for _ in range(_PAIRS))
    return math.sqrt(ratios[-1 - _PAIRS // 10] / ratios[_PAIRS // 10])


def contention() -> float:
    """How long threads wait for their cores: elapsed time over processor time, 1 where nothing else runs.

    As many threads as torch uses compute for some milliseconds, and the one that waits longest counts.
    """
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(threads) as pool:
        found = max(pool.map(_stretch, range(threads)))
        if found >= BUSY:  # what lasts no longer than one probe is no neighbour
            found = min(found, max(pool.map(_stretch, range(threads))))
    return max(1.0, found)


def _stretch(_: int) -> float:
    """Elapsed time over processor time of work that does not hold the interpreter's lock."""
    began, processor = time.perf_counter(), time.thread_time()
    while (elapsed := time.perf_counter() - began) < _PROBE_SECONDS:
        hashlib.sha256(_BLOCK).digest()
    return elapsed / (time.thread_time() - processor)


def load() -> float:
    """The processes that waited for a core during the last minute, over the cores; 0 where unknown."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


def with_load_and_noise(machine: Machine) -> Machine:
    """The machine, with how busy and how noisy it is now; that takes some tens of milliseconds.

    Noise is the larger of `timing_noise` and, where there is some, contention.
    """
    waiting = contention()
    noise = max(timing_noise(), waiting if waiting >= BUSY else 1.0)
    return msgspec.structs.replace(machine, load=round(load(), 3), noise=round(noise, 3))
