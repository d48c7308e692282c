"""Many callables timed alternately: in every round each runs one block.

Machines drift by tens of percent within a minute, so medians taken one after the other are no
comparison. What is compared here was measured within the same second.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from strategies.measuring.clock import Sampler, median_interval
from strategies.measuring.measurement import Timing, certain

HOPELESS = 10.0
"""Slower than the fastest by this factor, a callable sits the rounds out: most time would go to it."""

_FEWEST = 8
_SCREENING_SAMPLES = 3
_SCREENING_SECONDS = 1.0
"""Beyond these, two samples do: one of them may be what another program interrupted."""

Rounds = Mapping[str, Sequence[float]]
"""By name, the seconds of every round so far."""


def interleaved(
    samplers: Mapping[str, Sampler],
    *,
    max_rounds: int = 40,
    budget: float = 1.0,
    timer: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Times callables alternately, in another order in every round.

    What ran before leaves caches, freed memory and waiting threads behind; no callable has the same
    predecessor throughout. The orders are the same in every run. After `budget` seconds of `timer`
    no further round starts, once there are eight.
    """
    screened = {name: _shortest(sample) for name, sample in samplers.items()}
    limit = HOPELESS * min(screened.values(), default=0.0)
    running = [name for name, shortest in screened.items() if shortest <= limit]
    seconds: dict[str, list[float]] = {name: [] for name in running}
    deadline, done = timer() + budget, 0
    shuffled = random.Random(0)  # noqa: S311 - no secret
    while running and (done < _FEWEST or (done < max_rounds and timer() < deadline)):
        shuffled.shuffle(running)
        for name in running:
            seconds[name].append(samplers[name]())
        done += 1
    return timings(screened, seconds)


def timings(screened: Mapping[str, float], seconds: Rounds) -> dict[str, Timing]:
    """What the rounds say, such that quotients of two timings are paired ratios.

    The first of those that took part in the rounds, four at least, is the unit of all. The others
    keep the shortest time of their screening, which has no interval, and stay hopeless even if the
    rounds were slower than the screening.
    """
    found = {name: over(next(iter(seconds.values())), took) for name, took in seconds.items()}
    least = HOPELESS * min((timing.seconds for timing in found.values()), default=0.0)
    for name in screened.keys() - seconds.keys():
        found[name] = certain(max(screened[name], least))
    return found


def over(unit: Sequence[float], took: Sequence[float]) -> Timing:
    """What the rounds, three at least, say of a callable, in which another one is the unit."""
    size = statistics.median(unit)
    scaled = [size * a / b for a, b in zip(took, unit, strict=True)]
    low, high = median_interval(sorted(scaled))
    halves = ([s for i, s in enumerate(scaled) if i // 2 % 2 == which] for which in (0, 1))
    even, odd = map(statistics.median, halves)
    return Timing(statistics.median(scaled), low, high, (even, odd))


def _shortest(sample: Sampler) -> float:
    times = [sample(), sample()]
    while len(times) < _SCREENING_SAMPLES and sum(times) < _SCREENING_SECONDS:
        times.append(sample())
    return min(times)
