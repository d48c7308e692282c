"""The one clock: synchronized with the device, and warmed up.

A sample is a block of calls between two readings of a synchronized wall clock, long enough that
neither the clock's resolution nor the synchronization (some 10 µs on CUDA) weighs in it. On CUDA
the calls within a block queue up as they do in a program, so one clock serves both devices.
"""

import math
import timeit
from collections.abc import Callable

from torch.utils import benchmark

Sampler = Callable[[], float]
"""Times one block of calls, in seconds per call."""

synchronized_timer = benchmark.timer
"""Reads a wall clock in seconds once the device has finished what was launched."""

SHORTEST_BLOCK = 2e-3
"""Seconds that a sample should last at least."""

_UNDISTURBED = 0.1
"""Seconds from which on a block does not notice what was before it."""

_MISSED = 0.05
"""The probability that an interval does not hold the median."""


def sampler(f: Callable[[], object], timer: Callable[[], float] = synchronized_timer) -> Sampler:
    """Warms f up and returns a callable that times one block, in seconds per call of f.

    The first call is not trusted, since libraries may load in it.
    """
    stopwatch = timeit.Timer(f, timer=timer)  # switches garbage collection off while it times
    stopwatch.timeit(1)
    calls = 1
    while (elapsed := stopwatch.timeit(calls)) < SHORTEST_BLOCK:
        calls = max(2 * calls, math.ceil(calls * SHORTEST_BLOCK / max(elapsed, 1e-9)))

    def sample() -> float:
        # What ran before has emptied the caches, put threads to sleep and given memory back to the
        # system, for which a first call would pay; in a program that runs only f it never does.
        if elapsed < _UNDISTURBED:
            f()
        return stopwatch.timeit(calls) / calls

    return sample


def median_interval(ordered: list[float]) -> tuple[float, float]:
    """A 95 % confidence interval of the median that assumes nothing of the distribution.

    The number of n samples below the true median is binomial with p = ½, so the interval from
    the j-th smallest to the j-th largest misses it with probability 2 P(Bin(n, ½) < j) at most;
    j is the largest for which that stays within 5 %, and 1 where there are too few samples. (David
    & Nagaraja, Order Statistics, 2003, section 7.1.)
    """
    n, j, missed = len(ordered), 0, 0.0
    while (missed := missed + 2 * math.comb(n, j) / 2**n) <= _MISSED:
        j += 1
    j = max(j, 1)
    return ordered[j - 1], ordered[n - j]
