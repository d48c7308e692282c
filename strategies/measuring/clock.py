"""The one clock: device-synchronized, warmed up, and able to time two callables in turn.

Machines drift by tens of percent within a minute, so two medians taken one after the other are
no comparison. `paired` runs both callables in every pair and compares within the pair.

A sample is a block of calls between two readings of a synchronized wall clock, long enough that
neither the clock's resolution nor the synchronization (some 10 µs on CUDA) weighs in it. On CUDA
the calls within a block queue up as they do in a program, so one clock serves both devices.
"""

from __future__ import annotations

import math
import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass

from torch.utils import benchmark

synchronized_timer = benchmark.timer
"""Reads a wall clock in seconds once the device has finished what was launched."""

SHORTEST_BLOCK = 2e-3
"""Seconds that a sample should last at least."""

_UNDISTURBED = 0.1
"""Seconds from which on a block does not notice what was before it."""

FEWEST_PAIRS = 6
"""With fewer, not even the extremes enclose the median with 95 % confidence: 1 − 2·2⁻⁵ < 0.95."""


@dataclass(frozen=True)
class PairedTiming:
    """Two callables f and g timed in turn.

    Attributes:
        ratio: median over the pairs of (time of f) / (time of g).
        low: lower end of a 95 % confidence interval of that median.
        high: its upper end.
        seconds_f: median time of one call of f.
        seconds_g: median time of one call of g.
        ratios: of every pair, ascending.
    """

    ratio: float
    low: float
    high: float
    seconds_f: float
    seconds_g: float
    ratios: tuple[float, ...]


def paired(
    f: Callable[[], object],
    g: Callable[[], object],
    *,
    min_pairs: int = FEWEST_PAIRS,
    max_pairs: int = 100,
    budget: float = 1.0,
    timer: Callable[[], float] = synchronized_timer,
) -> PairedTiming:
    """Times f and g in turn and compares them within each pair.

    The order alternates from pair to pair, which cancels a drift that is linear in time.

    Args:
        f: the callable in the ratio's numerator.
        g: the callable in its denominator.
        min_pairs: pairs to run whatever they cost.
        max_pairs: pairs to stop at.
        budget: seconds after which no further pair starts, once there are `min_pairs`.
        timer: reads a clock in seconds once what was launched has finished.

    Raises:
        ValueError: if `min_pairs` is below six or above `max_pairs`.

    Example:
        >>> timing = paired(lambda: sum(range(2000)), lambda: sum(range(1000)), budget=0.05)
        >>> timing.low <= timing.ratio <= timing.high
        True
    """
    return paired_samples(
        sampler(f, timer),
        sampler(g, timer),
        min_pairs=min_pairs,
        max_pairs=max_pairs,
        budget=budget,
        timer=timer,
    )


def paired_samples(
    sample_f: Callable[[], float],
    sample_g: Callable[[], float],
    *,
    min_pairs: int = FEWEST_PAIRS,
    max_pairs: int = 100,
    budget: float = 1.0,
    timer: Callable[[], float] = time.perf_counter,
) -> PairedTiming:
    """As `paired`, of what is timed elsewhere: each argument times one block when called.

    Args:
        sample_f: times a block of f, in seconds per call; see `sampler`.
        sample_g: times a block of g.
        min_pairs: as in `paired`.
        max_pairs: as in `paired`.
        budget: as in `paired`.
        timer: reads the clock that the budget is of.

    Raises:
        ValueError: as in `paired`.

    Example:
        >>> paired_samples(lambda: 3.0, lambda: 2.0, budget=0).ratio
        1.5
    """
    if not FEWEST_PAIRS <= min_pairs <= max_pairs:
        raise ValueError(
            f"need {FEWEST_PAIRS} <= min_pairs <= max_pairs, got {min_pairs} and {max_pairs}"
        )
    deadline = timer() + budget
    times_f: list[float] = []
    times_g: list[float] = []
    while len(times_f) < min_pairs or (len(times_f) < max_pairs and timer() < deadline):
        if len(times_f) % 2 == 0:
            times_f.append(sample_f())
            times_g.append(sample_g())
        else:
            times_g.append(sample_g())
            times_f.append(sample_f())
    ratios = sorted(a / b for a, b in zip(times_f, times_g, strict=True))
    low, high = median_interval(ratios)
    return PairedTiming(
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        seconds_f=statistics.median(times_f),
        seconds_g=statistics.median(times_g),
        ratios=tuple(ratios),
    )


def median_interval(ordered: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """A confidence interval of the median that assumes nothing of the distribution.

    The number of n samples below the true median is binomial with p = ½, so the interval from
    the j-th smallest to the j-th largest misses it with probability 2 P(Bin(n, ½) < j) at most;
    j is the largest for which that stays within 1 − confidence. (David & Nagaraja, Order
    Statistics, 2003, section 7.1.)

    Args:
        ordered: the samples, ascending.
        confidence: probability, before sampling, that the interval holds the median.

    Returns:
        Both ends. The extremes of the samples if they are too few for the confidence asked.

    Example:
        >>> median_interval([float(i) for i in range(1, 11)])
        (2.0, 9.0)
    """
    n = len(ordered)
    j = 0
    missed = 0.0
    while j < (n + 1) // 2:
        missed += 2 * math.comb(n, j) / 2**n
        if missed > 1 - confidence:
            break
        j += 1
    j = max(j, 1)
    return ordered[j - 1], ordered[n - j]


def sampler(
    f: Callable[[], object], timer: Callable[[], float] = synchronized_timer
) -> Callable[[], float]:
    """Warms f up and returns a callable that times one block, in seconds per call of f.

    The first call is not trusted, since libraries may load in it.

    Example:
        >>> sampler(lambda: sum(range(1000)))() > 0
        True
    """
    stopwatch = timeit.Timer(f, timer=timer)  # switches garbage collection off while it times
    stopwatch.timeit(1)
    calls = 1
    while (elapsed := stopwatch.timeit(calls)) < SHORTEST_BLOCK:
        calls = max(2 * calls, math.ceil(calls * SHORTEST_BLOCK / max(elapsed, 1e-9)))

    def sample() -> float:
        # The other callable has emptied the caches, put threads to sleep and given memory back to the
        # system, for which a first call would pay; in a program that runs only one it never does.
        if elapsed < _UNDISTURBED:
            f()
        return stopwatch.timeit(calls) / calls

    return sample
