"""Which strategies may be used in a case at all: those that ran and are accurate.

The error has to be at most ten times the best in the case, or 30 κ u (κ the condition number, u the
unit roundoff) if that is more, or within the tolerance asked for; and at no condition number that was
measured may the strategy lose digits that others keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from strategies.accuracy.measures import PASS_BELOW
from strategies.amplification import unit_roundoff
from strategies.measuring.measurement import WORST_ERROR, Cell, Measurement, Objective, Status
from strategies.store import Run, newest_cells

ACCURACY_FACTOR = 10.0
"""How much larger than the best error of its case an error may be."""

WORST_CONDITION = 0.1
"""Beyond κ u of this, the gradient has no correct digit to compare strategies by."""

USUAL_LOG10_COND = 1.0
"""log₁₀ κ of the cases that are timed."""


class Criteria(msgspec.Struct, frozen=True):
    """What the user asks of a strategy.

    Attributes:
        objective: what is to be small.
        accuracy: the largest relative error accepted; None stands for ten times the best.
        memory_bytes: the most memory that the backward may take above its graph.
    """

    objective: Objective = Objective.FORWARD_BACKWARD
    accuracy: float | None = None
    memory_bytes: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("accuracy", self.accuracy), ("memory", self.memory_bytes)):
            if limit is not None and not (limit > 0 and math.isfinite(limit)):
                raise ValueError(f"the limit of {name} has to be a positive number, not {limit}")


ANY = Criteria()
"""What is asked where nothing else is said."""


def breakdowns(
    runs: Sequence[Run], accuracy: float | None = None
) -> dict[tuple[str, str], dict[str, str]]:
    """By operation and dtype, the strategies that lose accuracy as conditioning worsens, and where.

    With an accuracy asked for there are none: a limit that the user sets is about their own
    matrices, and is applied to the case alone. A dtype without such measurements inherits from those
    that have them: what a strategy does with the condition number is in its formula, not in the
    precision.
    """
    if accuracy is not None:
        return {}
    found: dict[tuple[str, str], dict[str, str]] = {}
    kinds = set()
    for _, cell in newest_cells([run for run in runs if run.kind == "grid"]):
        case = cell.case
        kind = case.operation, case.dtype_name
        kinds.add(kind)
        if case.log10_cond is None:
            continue
        reasons = found.setdefault(kind, {})
        errors = _errors(cell)
        if not errors or 10.0**case.log10_cond * unit_roundoff(case.dtype) > WORST_CONDITION:
            continue
        for name, error in errors.items():
            if error > _accurate(cell, errors):
                why = f"unstable: at κ = 1e{case.log10_cond:.0f} its error is {error:.1e}"
                reasons.setdefault(name, f"{why}, the best is {min(errors.values()):.1e}")
    measured = list(found.items())
    for operation, dtype in sorted(kinds - found.keys()):
        inherited = found.setdefault((operation, dtype), {})
        for (other, source), reasons in measured:
            if other == operation:
                for name, why in reasons.items():
                    inherited.setdefault(name, f"{why} ({source})")
    return found


def why_ineligible(cell: Cell, unstable: Mapping[str, str], criteria: Criteria) -> dict[str, str]:
    """Of every strategy of a cell the reason in words, empty where it may be used."""
    errors = _errors(cell)
    limit = criteria.accuracy or (_accurate(cell, errors) if errors else None)
    return {
        each.strategy: _why(each, limit, criteria) or unstable.get(each.strategy, "")
        for each in cell
    }


def _why(each: Measurement, limit: float | None, criteria: Criteria) -> str:
    if each.status is not Status.OK:
        return f"{each.status}: {each.note}" if each.note else str(each.status)
    if each.cost(criteria.objective) is None:
        return f"{criteria.objective} not measured"
    # Without a limit nobody's error was measured here, which counts against nobody.
    if limit is not None:
        if each.error is None:
            return "error not measured"
        if each.error > limit or each.error >= WORST_ERROR:
            return f"error {each.error:.1e} exceeds {limit:.1e}"
    if criteria.memory_bytes is not None:
        if each.peak_bytes is None:
            return "memory not measured"
        if each.peak_bytes > criteria.memory_bytes:
            return f"memory {each.peak_bytes:.1e} B exceeds {criteria.memory_bytes:.1e} B"
    return ""


def _errors(cell: Cell) -> dict[str, float]:
    return {
        each.strategy: each.error
        for each in cell
        if each.status is Status.OK and each.error is not None
    }


def _accurate(cell: Cell, errors: Mapping[str, float]) -> float:
    """The largest error that is accurate enough in a case.

    Ten times the best error; or `PASS_BELOW` κ u, where LAPACK's tests begin to fail, if that is
    more: the smallest error among several stable methods is partly luck.
    """
    log10_cond = USUAL_LOG10_COND if cell.case.log10_cond is None else cell.case.log10_cond
    attainable = 10.0**log10_cond * unit_roundoff(cell.case.dtype)
    return max(ACCURACY_FACTOR * min(errors.values()), PASS_BELOW * attainable)
