"""The shipped policy as measurements on this machine correct it.

Few cells can be measured in minutes; the shipped policy has about a thousand, without which one measured
8x8 would answer for 512x512. What two machines, or two numbers of threads, disagree about changes slowly
with the sizes: a strategy that loses a factor without a second thread loses it in the neighbourhood, too.
"""

import math
import statistics
from collections.abc import Sequence

import msgspec

from strategies.policy import schema
from strategies.policy.schema import Cell, Part, Point, Policy, rounded

REACH = 6.0
"""Factors of two in size from which a measurement weighs as much as what was shipped."""

Costs = dict[str, float]


def adapt(shipped: Policy, part: Part) -> Policy:
    """What holds on the machine of a part: a policy that is looked up like any other.

    - A case that was measured there is answered by that.
    - Of every other shipped cell, the times are multiplied by what the measured cells say of each
      strategy: time there over time shipped, means of logarithms weighted by 1 / distance². The shipped
      times count as one measurement at a distance of `REACH`, so that nothing is corrected from afar.
    - A dtype that was not shipped begins as the shipped cells that would have answered for it.
    """
    operations = dict(shipped.operations)
    for name in part.cells.keys() | part.stability.keys():
        entry = shipped.of(name)
        known = entry.cells.get(part.device, {})
        adapted: dict[str, tuple[Cell, ...]] = {}
        for dtype, measured in part.cells.get(name, {}).items():
            for deficient in (False, True):
                here = schema.of_rank(measured, deficient)
                corrected = adapt_cells(schema.answering(known, dtype, deficient), here)
                adapted[dtype] = (*adapted.get(dtype, ()), *corrected)
        # Of the stability here counts what is worse than shipped, or all that there is.
        judged = {
            strategy: found
            for strategy, found in part.stability.get(name, {}).items()
            if strategy not in entry.stability or not found.is_stable
        }
        cells = {**entry.cells, part.device: {**known, **adapted}}
        stability = {**entry.stability, **judged}
        operations[name] = msgspec.structs.replace(entry, cells=cells, stability=stability)
    return msgspec.structs.replace(
        shipped, operations=operations, provenance=(part.machine, *shipped.provenance), others=()
    )


def adapt_cells(shipped: Sequence[Cell], measured: Sequence[Cell]) -> list[Cell]:
    """The measured cells, and the shipped ones at other places as these correct them."""
    changes = [(cell.position, _change(shipped, cell)) for cell in measured]
    places = {place for place, _ in changes}
    left = (cell for cell in shipped if cell.position not in places)
    return [*measured, *(_corrected(cell, changes) for cell in left)]


def _change(shipped: Sequence[Cell], measured: Cell) -> Costs:
    """The logarithm of time here over time shipped, without what all strategies share."""
    before = schema.interpolated(shipped, measured.position)
    known = [name for name in measured.times if name in before]
    changes = {name: math.log(measured.times[name]) - before[name] for name in known}
    shared = statistics.fmean(changes.values()) if changes else 0.0
    return {name: change - shared for name, change in changes.items()}


def _corrected(cell: Cell, changes: Sequence[tuple[Point, Costs]]) -> Cell:
    costs = {}
    for name, time in cell.times.items():
        known = [(math.dist(at, cell.position) ** -2, of[name]) for at, of in changes if name in of]
        whole = sum(weight for weight, _ in known) + REACH**-2
        costs[name] = math.log(time) + sum(weight * change for weight, change in known) / whole
    use = min(costs, key=costs.__getitem__)
    times = {name: rounded(math.exp(cost - costs[use])) for name, cost in costs.items()}
    return msgspec.structs.replace(cell, use=use, ties=(), times=times)
