"""Which strategies may be used in a case at all: those that ran and are stable.

Stable is what has a stability ratio (`strategies.accuracy.stability`) of at most
`strategies.policy.schema.LIMIT` in every hard case of its operation, whatever the sizes of the case at
hand. Nothing is eligible for want of a better one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from strategies.measuring.measurement import WORST_ERROR, Cell, Measurement, Objective, Status
from strategies.policy.schema import Evidence
from strategies.selection.stability import why_unstable


class Criteria(msgspec.Struct, frozen=True):
    """What the user asks of a strategy.

    Attributes:
        objective: what is to be small.
        accuracy: the largest relative error accepted, besides; None is any.
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


def why_ineligible(
    cell: Cell, stability: Mapping[str, Evidence], criteria: Criteria
) -> dict[str, str]:
    """Of every strategy of a cell the reason in words, empty where it may be used."""
    return {
        each.strategy: _why(each, criteria) or why_unstable(each.strategy, stability)
        for each in cell
    }


def _why(each: Measurement, criteria: Criteria) -> str:
    if each.status is not Status.OK:
        return f"{each.status}: {each.note}" if each.note else str(each.status)
    if each.cost(criteria.objective) is None:
        return f"{criteria.objective} not measured"
    if each.error is not None and each.error >= WORST_ERROR:
        return "the gradient is not finite, or has no digit"
    if criteria.accuracy is not None:
        if each.error is None:
            return "error not measured"
        if each.error > criteria.accuracy:
            return f"error {each.error:.1e} exceeds {criteria.accuracy:.1e}"
    if criteria.memory_bytes is not None:
        if each.peak_bytes is None:
            return "memory not measured"
        if each.peak_bytes > criteria.memory_bytes:
            return f"memory {each.peak_bytes:.1e} B exceeds {criteria.memory_bytes:.1e} B"
    return ""
