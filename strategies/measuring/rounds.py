"""Many callables timed in turn: in every round each runs one block.

What is compared was then measured within the same second, whatever the machine did meanwhile. A
callable that is hopelessly slower than the fastest is called a few times and sits the rounds out:
most of the time would go to it, and no more is known of its rank for that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strategies.measuring.clock import sampler, synchronized_timer

HOPELESS = 10.0
"""A factor at which a callable is out of the running, however noisy its first calls are."""

_SCREENING_CALLS = 3
_SCREENING_SECONDS = 1.0
"""Long enough that what another program interrupted is tried again."""


@dataclass(frozen=True)
class Rounds:
    """What callables take.

    Attributes:
        screened: of every callable, the shortest of its first few calls, in seconds.
        seconds: of those that are not hopeless, seconds per call in every round.
    """

    screened: dict[str, float]
    seconds: dict[str, list[float]]


def in_rounds(
    calls: Mapping[str, Callable[[], object]],
    *,
    hopeless: float = HOPELESS,
    min_rounds: int = 8,
    max_rounds: int = 40,
    budget: float = 1.0,
    timer: Callable[[], float] = synchronized_timer,
) -> Rounds:
    """Times callables in turn, in another order in every round.

    What ran before leaves caches, freed memory and waiting threads behind; no callable has the same
    predecessor throughout. The orders are the same in every run.

    Args:
        calls: what to time, by name; each has run once before.
        hopeless: slower than the fastest by this factor, a callable sits the rounds out.
        min_rounds: rounds to run whatever they cost.
        max_rounds: rounds to stop at.
        budget: seconds after which no further round starts, once there are `min_rounds`.
        timer: reads a clock in seconds once what was launched has finished.

    Example:
        >>> calls = {"short": lambda: sum(range(100)), "long": lambda: sum(range(100_000))}
        >>> sorted(in_rounds(calls, budget=0).seconds)
        ['short']
    """
    screened = {name: _shortest(call, timer) for name, call in calls.items()}
    limit = hopeless * min(screened.values(), default=0.0)
    samples = {name: sampler(calls[name], timer) for name in calls if screened[name] <= limit}
    seconds: dict[str, list[float]] = {name: [] for name in samples}
    deadline = timer() + budget
    order, shuffled = list(samples), random.Random(0)  # noqa: S311 - no secret
    done = 0
    while order and (done < min_rounds or (done < max_rounds and timer() < deadline)):
        shuffled.shuffle(order)
        for name in order:
            seconds[name].append(samples[name]())
        done += 1
    return Rounds(screened, seconds)


def _shortest(call: Callable[[], object], timer: Callable[[], float]) -> float:
    times: list[float] = []
    while len(times) < _SCREENING_CALLS and sum(times) < _SCREENING_SECONDS:
        start = timer()
        call()
        times.append(timer() - start)
    return min(times)
