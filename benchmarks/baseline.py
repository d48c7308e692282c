"""Whether a strategy has become slower: the gate behind `pytest benchmarks --benchmark-compare`.

Seconds drift by tens of percent on a shared machine, so they are no baseline. What is compared is
every strategy's time over native's in the same case, both timed in the same rounds. A verdict is on
a strategy and operation, by the geometric mean over its cases.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from strategies import operations, registry
from strategies.measuring import Case, Cell, Objective, measure, store
from strategies.policy import BASELINE

PATH = Path(__file__).with_name("baseline.json")

SLOWER = 1.5
"""A geometric mean beyond this fails. Runs on a busy machine differ by a tenth or two."""

SECONDS = 0.5
"""For the rounds of a case."""

session: dict[Case, Cell] = {}
"""What `measured` has measured so far."""


def measured(case: Case) -> Cell:
    """All strategies of a case in the same rounds, once a session."""
    if case not in session:
        names = registry.distinct(operations.get(case.operation).stem)
        session[case] = measure(case, names, objectives=(Objective.BACKWARD,), budget=SECONDS)
    return session[case]


def verdict() -> tuple[bool, list[str]]:
    """Whether this session passes against the committed baseline, and why, in words."""
    found = slowdowns(load(), session.values())
    if not found:
        return False, ["the baseline holds none of these cases"]
    slower = [
        f"{strategy} takes {slowdown:.2f} times as long in {operation} as it did"
        for (strategy, operation), slowdown in found.items()
        if slowdown > SLOWER
    ]
    most = max(found.values())
    passed = f"no strategy has become slower: {most:.2f}× at most, {SLOWER}× fails"
    return not slower, slower or [passed]


def slowdowns(kept: Iterable[Cell], measured: Iterable[Cell]) -> dict[tuple[str, str], float]:
    """By strategy and operation, the geometric mean of measured over kept ratios, of what both have."""
    before = _ratios(kept)
    grown: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (case, strategy), ratio in _ratios(measured).items():
        if (case, strategy) in before:
            grown[strategy, case.operation].append(ratio / before[case, strategy])
    return {group: statistics.geometric_mean(each) for group, each in grown.items()}


def load() -> tuple[Cell, ...]:
    """The committed cells."""
    (run,) = store.load(PATH, "baseline")
    return run.cells


def _ratios(cells: Iterable[Cell]) -> dict[tuple[Case, str], float]:
    """Time over native's, by case and strategy."""
    return {
        (cell.case, each.strategy): 1 / speedup
        for cell in cells
        for each in cell
        for speedup, _, _ in [cell.speedup(BASELINE, each.strategy, Objective.BACKWARD)]
        if each.strategy != BASELINE and not math.isnan(speedup)
    }
