"""Which strategy to use in each case, and what that rests on.

Of the eligible strategies the fastest is *best*. Those that cannot be told from it form a *tie*, and a
tie goes to the simplest.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from strategies import operations, registry
from strategies.measuring import Case, Cell, Machine, Measurement, Objective, Status
from strategies.measuring.noise import BUSY, VERY_NOISY
from strategies.measuring.store import Run, newest_cells
from strategies.policy import BASELINE
from strategies.selection.eligibility import ANY, Criteria, why_ineligible
from strategies.selection.stability import Known, evidence

RESOLUTION = 1.05
"""Ratios within this of 1 are a tie: timings of one machine repeat no better, whatever the interval
of one run says (memory layout, clock rate)."""

LARGEST_PRICE_OF_SIMPLICITY = 1.03
"""A tie goes to a simpler strategy only if that is slower by no more than this, noise or not: "auto" is to
be slower than native by more nowhere."""

NOISY = 2.0
"""An interval that holds both faster and slower, and whose ends are this factor apart, says nothing."""

OUTLIER = 3.0
"""Native is not to take so many times as long as in a case that is larger in every size."""


class Verdict(StrEnum):
    """What a strategy is worth in one case."""

    BEST = "best"
    TIE = "tie"
    SLOWER = "slower"
    INELIGIBLE = "ineligible"


@dataclass(frozen=True)
class Judged:
    """The verdict on one strategy in one case.

    Attributes:
        reason: why it is ineligible, else empty.
        chosen: whether it is the one to use.
        ratio: its cost over the fastest eligible one's; NaN where there is none. The ends of its
            interval hold the true ratio between them if both measured intervals hold the true costs.
    """

    measurement: Measurement
    verdict: Verdict
    reason: str
    chosen: bool
    ratio: float
    ratio_low: float
    ratio_high: float

    @property
    def strategy(self) -> str:
        return self.measurement.strategy

    @property
    def is_eligible(self) -> bool:
        return self.verdict is not Verdict.INELIGIBLE

    @property
    def is_too_noisy(self) -> bool:
        """Whether it may as well be much faster as much slower than the fastest."""
        both = self.ratio_low < 1 / RESOLUTION and self.ratio_high > RESOLUTION
        return self.is_eligible and both and self.ratio_high > NOISY * self.ratio_low


class Speedup(NamedTuple):
    """How many times faster a strategy is than native, NaN where either was not measured.

    It is too noisy if the ends of its interval are a factor of `NOISY` apart, or the machine was busy.
    """

    ratio: float
    low: float
    high: float
    is_too_noisy: bool


@dataclass(frozen=True)
class JudgedCell:
    """The verdict on all strategies in one case.

    Attributes:
        judged: the strategies from best to worst.
        source: the file that the measurement is in.
        is_outlier: whether native took far longer than in a larger case of the same run.
    """

    machine: Machine
    cell: Cell
    judged: tuple[Judged, ...]
    source: str = ""
    is_outlier: bool = False

    @property
    def case(self) -> Case:
        return self.cell.case

    def get(self, name: str) -> Judged | None:
        return next((each for each in self.judged if each.strategy == name), None)

    @property
    def chosen(self) -> Judged | None:
        """The strategy to use; None where none is eligible."""
        return next((each for each in self.judged if each.chosen), None)

    @property
    def ties(self) -> tuple[str, ...]:
        """The other strategies that cannot be told from the fastest."""
        tied = (each for each in self.judged if each.verdict is Verdict.TIE and not each.chosen)
        return tuple(each.strategy for each in tied)

    @property
    def is_busy(self) -> bool:
        """Whether the machine was too busy for times to say much: in this case, or as the run began."""
        if self.cell.contention is not None:
            return self.cell.contention >= BUSY or self.is_outlier
        return (self.machine.noise or 0.0) >= VERY_NOISY or self.is_outlier

    @property
    def is_too_noisy(self) -> bool:
        """Whether the choice rests on an interval that says nothing, or on a busy machine."""
        return self.is_busy or any(each.is_too_noisy for each in self.judged)

    def over_native(self, strategy: str, objective: Objective) -> Speedup:
        """How many times faster a strategy is than native, and whether that can be relied on."""
        ratio, low, high = self.cell.speedup(BASELINE, strategy, objective)
        is_noisy = strategy != BASELINE and (self.is_busy or high > NOISY * low)
        return Speedup(ratio, low, high, is_noisy)


def judge(runs: Sequence[Run], criteria: Criteria = ANY) -> list[JudgedCell]:
    """Judges every strategy in every timed case, by the newest measurement of each machine.

    Of the runs those of kinds "grid" and "stability" count. ValueError if no case was timed as the
    objective asks.
    """
    stability = evidence(runs)
    runs = [run for run in runs if run.kind == "grid"]
    sources = {id(run.machine): run.path for run in runs}
    judged = []
    for machine, cell in newest_cells(runs, lambda cell: _is_timed(cell, criteria.objective)):
        known = stability.get(operations.get(cell.case.operation).policy_operation, {})
        judged.append(judge_cell(machine, cell, criteria, known, sources[id(machine)]))
    if not judged:
        problem = f"the results hold no case in which {criteria.objective} was measured"
        raise ValueError(f"{problem}; `backward-strategies measure` measures some")
    return _with_outliers(judged, criteria.objective)


def _with_outliers(judged: list[JudgedCell], objective: Objective) -> list[JudgedCell]:
    """The same, those cells marked in which native took far longer than in a larger one of the run."""
    groups: dict[tuple[object, ...], list[tuple[JudgedCell, tuple[int, ...], float]]] = {}
    for each in judged:
        cost, case = each.cell.costs(objective).get(BASELINE), each.case
        if cost and objective is not Objective.MEMORY:
            what = case.operation, case.dtype, case.device, case.rank is None
            sizes = *case.shape, case.batch, case.rhs
            groups.setdefault((id(each.machine), *what), []).append((each, sizes, cost.seconds))
    outliers = {
        id(each)
        for group in groups.values()
        for each, sizes, took in group
        if any(
            took > OUTLIER * other and larger != sizes and all(map(operator.ge, larger, sizes))
            for _, larger, other in group
        )
    }
    return [replace(each, is_outlier=id(each) in outliers) for each in judged]


def judge_cell(
    machine: Machine, cell: Cell, criteria: Criteria, stability: Known, source: str = ""
) -> JudgedCell:
    """Judges every strategy in one case, by what is known of its operation's stability."""
    reasons = why_ineligible(cell, stability, criteria)
    costs = cell.costs(criteria.objective)
    eligible = {name: cost.seconds for name, cost in costs.items() if not reasons[name]}
    fastest = min(eligible, key=eligible.__getitem__, default="")
    ratios = {name: cell.speedup(name, fastest, criteria.objective) for name in reasons}
    same = [name for name in eligible if ratios[name][1] <= RESOLUTION]
    affordable = [name for name in same if ratios[name][0] <= LARGEST_PRICE_OF_SIMPLICITY]
    chosen = min(affordable, key=simplicity, default="")

    def verdict(name: str) -> Verdict:
        if name not in eligible:
            return Verdict.INELIGIBLE
        if name not in same:
            return Verdict.SLOWER
        return Verdict.TIE if len(same) > 1 else Verdict.BEST

    def order(each: Judged) -> tuple[bool, int, float]:
        ratio = math.inf if math.isnan(each.ratio) else each.ratio
        return not each.chosen, list(Verdict).index(each.verdict), ratio

    judged = [
        Judged(each, verdict(name), reasons[name], name == chosen, *ratios[name])
        for name, each in zip(ratios, cell, strict=True)
    ]
    return JudgedCell(machine, cell, tuple(sorted(judged, key=order)), source)


def machines(cells: Iterable[JudgedCell]) -> list[Machine]:
    """Where the cells were measured: every run once, oldest first."""
    found = {id(cell.machine): cell.machine for cell in cells}
    return sorted(found.values(), key=lambda machine: machine.started_at)


def simplicity(name: str) -> tuple[int, str]:
    """A key that sorts strategies from simple to elaborate, those that are not installed last."""
    names = registry.available()
    return (names.index(name) if name in names else len(names), name)


def _is_timed(cell: Cell, objective: Objective) -> bool:
    """Whether a cell compares costs, and is not there for its errors alone."""
    if cell.case.log10_cond is not None or cell.case.matrix is not None:
        return False
    ran = [each for each in cell if each.status is Status.OK]
    return not ran or any(each.cost(objective) for each in ran)
