"""Which strategy is the fastest in a case, found out in as little time as it takes to be sure."""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from strategies.measuring.case import Case
from strategies.measuring.clock import Sampler, median_interval, sampler
from strategies.measuring.measure import prepare
from strategies.measuring.measurement import Cell
from strategies.measuring.timing import Rounds, over
from strategies.measuring.workload import forward_backward_of

CLOSE = 1.05
"""Times within this factor need not be told apart: repeated measurements differ by as much."""

_OUT = 1.3
"""What was slower than the fastest by this factor in each of its rounds takes part in no more."""

_SCREENING, _FEWEST, _MOST = 3, 6, 24
"""Rounds. Six are the fewest in which an interval of 95 % confidence is one."""


def race(case: Case, names: Sequence[str], *, budget: float = 1.0) -> Cell:
    """Times strategies by forward and backward together, until it is clear which is the fastest.

    That one is the unit of the others. Errors and memory are not measured. After `budget` seconds no
    round is made beyond the fewest. ValueError says that the device of the case is not there.
    """
    runnable, found = prepare(case, names, made=forward_backward_of)
    seconds = rounds({name: sampler(call) for name, call in runnable.items()}, budget=budget)
    if seconds:
        unit = seconds[fastest(seconds)]
        for name, took in seconds.items():
            timing = over(unit[: len(took)], took)
            found[name] = msgspec.structs.replace(found[name], forward_backward=timing)
    return Cell(case, tuple(found.values()))


def rounds(
    samplers: Mapping[str, Sampler],
    *,
    budget: float,
    timer: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Rounds in which all samplers are called that may still be the fastest, in another order each.

    What is clearly slower has had fewer rounds than the fastest, the first ones.
    """
    seconds: dict[str, list[float]] = {name: [] for name in samplers}
    running, shuffled = list(samplers), random.Random(0)  # noqa: S311 - no secret
    deadline, done = timer() + budget, 0
    while running and done < _MOST:
        shuffled.shuffle(running)
        for name in running:
            seconds[name].append(samplers[name]())
        done += 1
        if done < _SCREENING:
            continue
        best = fastest({name: seconds[name] for name in running})
        running = [n for n in running if min(_ratios(seconds, n, best)) <= _OUT]
        left = {name: seconds[name] for name in running}
        if len(left) == 1 or (done >= _FEWEST and (timer() >= deadline or is_clear(left))):
            break
    return seconds


def fastest(seconds: Rounds) -> str:
    """The one with the smallest median of those that took part in all rounds."""
    most = max(map(len, seconds.values()))
    lasting = (name for name in seconds if len(seconds[name]) == most)
    return min(lasting, key=lambda name: statistics.median(seconds[name]))


def is_clear(seconds: Rounds) -> bool:
    """Whether every other callable is slower than the fastest, or as good as that.

    By an interval of 95 % confidence of the median of the ratios within a round.
    """
    best = fastest(seconds)
    others = seconds.keys() - {best}
    ends = (median_interval(sorted(_ratios(seconds, name, best))) for name in others)
    return all(low > 1 or high <= CLOSE for low, high in ends)


def _ratios(seconds: Rounds, name: str, best: str) -> list[float]:
    return [a / b for a, b in zip(seconds[name], seconds[best], strict=False)]
