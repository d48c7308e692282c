"""Which strategies may be used in a case at all: those that ran and are stable.

Stable is what has a stability ratio (`strategies.accuracy.stability`) of at most
`strategies.policy.schema.LIMIT` in every hard case of its operation, whatever the sizes of the case at
hand. Nothing is eligible for want of a better one.
"""

import math
from collections.abc import Iterator

import msgspec

from strategies.measuring.measurement import WORST_ERROR, Cell, Measurement, Objective, Status
from strategies.selection.stability import Known, why_unstable


class Criteria(msgspec.Struct, frozen=True):
    """What the user asks of a strategy.

    Attributes:
        accuracy: the largest relative error accepted; None is any.
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


def why_ineligible(cell: Cell, stability: Known, criteria: Criteria) -> dict[str, str]:
    """Of every strategy of a cell the reason in words, empty where it may be used."""
    return {
        each.strategy: next(_reasons(each, criteria), why_unstable(each.strategy, stability))
        for each in cell
    }


def _reasons(each: Measurement, criteria: Criteria) -> Iterator[str]:
    if each.status is not Status.OK:
        yield f"{each.status}: {each.note}" if each.note else str(each.status)
    if each.cost(criteria.objective) is None:
        yield f"{criteria.objective} not measured"
    if each.error is not None and each.error >= WORST_ERROR:
        yield "the gradient is not finite, or has no digit"
    for name, found, limit, unit in (
        ("error", each.error, criteria.accuracy, ""),
        ("memory", each.peak_bytes, criteria.memory_bytes, " B"),
    ):
        if limit is not None and found is None:
            yield f"{name} not measured"
        elif limit is not None and found is not None and found > limit:
            yield f"{name} {found:.1e}{unit} exceeds {limit:.1e}{unit}"
