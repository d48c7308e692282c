"""What is known of one strategy in one case, and of all strategies in it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec

from strategies.measuring.case import Case
from strategies.policy.schema import WORST_RATIO

WORST_ERROR = 1e6
"""Stands for any larger error, infinite ones included, which JSON cannot hold."""

Amount = Annotated[float, msgspec.Meta(gt=0, le=1e18)]
"""Seconds, or bytes."""

Error = Annotated[float, msgspec.Meta(ge=0, le=WORST_ERROR)]
Ratio = Annotated[float, msgspec.Meta(ge=0, le=WORST_RATIO)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**18)]


class Objective(StrEnum):
    """What is to be small."""

    BACKWARD = "backward"
    FORWARD_BACKWARD = "forward_backward"
    MEMORY = "memory"


class Status(StrEnum):
    """How the attempt to run a strategy ended."""

    OK = "ok"
    NOT_APPLICABLE = "n/a"
    FAILED = "failed"


class Timing(msgspec.Struct, frozen=True, array_like=True):
    """Seconds per call, such that quotients between the strategies of a cell are paired ratios.

    The strategies of a cell share a unit: the first of them that took part in the rounds. The seconds are
    the median over the rounds of the ratio to the unit in the same round, times the median of the unit,
    with a 95 % confidence interval from `low` to `high`; `halves` are the same over the odd and over the
    even pairs of rounds alone, so that one half can choose and the other judge. ValueError if the median is
    outside its interval.
    """

    seconds: Amount
    low: Amount
    high: Amount
    halves: tuple[Amount, Amount]

    def __post_init__(self) -> None:
        if not self.low <= self.seconds <= self.high:
            raise ValueError(f"{self.seconds} s is not between {self.low} and {self.high}")

    def over(self, other: "Timing") -> tuple[float, float, float]:
        """How many times longer it is than another of the cell, with the ends of a 95 % interval."""
        return self.seconds / other.seconds, self.low / other.high, self.high / other.low


def certain(seconds: float) -> Timing:
    """A timing of which nothing is uncertain."""
    return Timing(seconds, seconds, seconds, (seconds, seconds))


class Stability(msgspec.Struct, frozen=True, array_like=True):
    """The stability ratios (`strategies.accuracy.stability`) of a strategy in a case.

    They are those of the result, of the worst of its columns, and the same of the worst gradient.
    """

    result: Ratio
    result_columns: Ratio
    gradient: Ratio
    gradient_columns: Ratio

    @property
    def worst(self) -> float:
        return max(msgspec.structs.astuple(self))


class Measurement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One strategy in one case; None where a quantity was not measured.

    Attributes:
        strategy: its name, or that of another library.
        error: the largest ‖computed − exact‖ / ‖exact‖ of a gradient, `WORST_ERROR` at
            most; also where a gradient is not finite.
        peak_bytes: the most bytes that the backward held at once, above its graph.
        calls: torch operations that the backward dispatched.
        note: why it did not run.
    """

    strategy: str
    status: Status = Status.OK
    backward: Timing | None = None
    forward_backward: Timing | None = None
    error: Error | None = None
    stability: Stability | None = None
    peak_bytes: Count | None = None
    flops: Count | None = None
    calls: Count | None = None
    note: str = ""

    def cost(self, objective: Objective) -> Timing | None:
        """What an objective counts; memory as a timing of which nothing is uncertain."""
        if objective is not Objective.MEMORY:
            return self.backward if objective is Objective.BACKWARD else self.forward_backward
        # An exact zero would make every ratio to it infinite.
        return None if self.peak_bytes is None else certain(max(self.peak_bytes, 1))


def without_result(name: str, error: BaseException, *, refuses: bool) -> Measurement:
    """A strategy that refused a case or failed in it, with the first line of its error."""
    note = next(iter(str(error).splitlines()), type(error).__name__)[:200]
    return Measurement(name, Status.NOT_APPLICABLE if refuses else Status.FAILED, note=note)


@dataclass(frozen=True)
class Cell:
    """One case, measured with several strategies, that which others are compared with first.

    Contention (`strategies.measuring.noise`) is the worst before and after; None where nothing was timed.
    """

    case: Case
    strategies: tuple[Measurement, ...]
    contention: float | None = None

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.strategies)

    def get(self, name: str) -> Measurement | None:
        return next((each for each in self.strategies if each.strategy == name), None)

    def costs(self, objective: Objective) -> dict[str, Timing]:
        """What an objective counts, of those of which it was measured."""
        costs = {each.strategy: each.cost(objective) for each in self.strategies}
        return {name: cost for name, cost in costs.items() if cost is not None}

    def speedup(
        self, over: str, name: str, objective: Objective = Objective.BACKWARD
    ) -> tuple[float, float, float]:
        """How many times faster a strategy is than another, with the ends of a 95 % interval.

        NaN where either was not measured.
        """
        costs = self.costs(objective)
        if not {over, name} <= costs.keys():
            return math.nan, math.nan, math.nan
        return (1.0, 1.0, 1.0) if over == name else costs[over].over(costs[name])
