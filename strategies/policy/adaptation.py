"""The shipped policy as measurements on this machine correct it.

Few cells can be measured in minutes; the shipped policy has about a thousand. What two machines, or two
numbers of threads, disagree about changes slowly with the sizes: a strategy that loses a
factor without a second thread loses it in the neighbourhood, too. So

- a case that was measured here is answered by that;
- of every other shipped cell, the times are multiplied by what the nearest cells measured here say of
  each strategy: time here over time shipped, means of logarithms weighted by 1 / distance². The shipped
  times count as one measurement at a distance of `REACH`, so that nothing is corrected from afar;
- a dtype that was not shipped begins as the shipped cells that would have answered for it.

The policy that comes out is looked up like any other. A few measured cells never hide the many shipped
ones: without an operation's or a dtype's other cells, one measured 8x8 would answer for 512x512.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from strategies.policy.schema import (
    DTYPES_IN_ORDER,
    Cell,
    Evidence,
    OperationPolicy,
    Part,
    Point,
    Policy,
    closest,
    interpolated,
)

__all__ = ["adapt", "adapt_cells", "estimate_costs"]

REACH = 6.0
"""Factors of two in size from which a measurement weighs as much as what was shipped."""

Costs = dict[str, float]


def adapt(shipped: Policy, part: Part) -> Policy:
    """What holds on the machine of a part: see above."""
    operations = dict(shipped.operations)
    for name in part.cells.keys() | part.stability.keys():
        entry = operations.get(name, OperationPolicy(cells={}))
        by_dtype = dict(entry.cells.get(part.device, {}))
        for dtype, measured in part.cells.get(name, {}).items():
            begun = fallback_cells(entry.cells.get(part.device, {}), dtype)
            by_dtype[dtype] = adapt_cells(begun, measured)
        operations[name] = msgspec.structs.replace(
            entry,
            cells={**entry.cells, part.device: by_dtype},
            stability=_stability(entry.stability, part.stability.get(name, {})),
        )
    return msgspec.structs.replace(
        shipped, operations=operations, provenance=(part.machine, *shipped.provenance), others=()
    )


def fallback_cells(by_dtype: Mapping[str, Sequence[Cell]], dtype: str) -> list[Cell]:
    """The shipped cells that answer for a dtype: its own, or those of the next dtype that has some."""
    found: list[Cell] = []
    for deficient in (False, True):
        for candidate in DTYPES_IN_ORDER[dtype]:
            of_dtype = by_dtype.get(candidate, ())
            if cells := [cell for cell in of_dtype if (cell.rank is not None) == deficient]:
                found += cells
                break
    return found


def adapt_cells(shipped: Sequence[Cell], measured: Sequence[Cell]) -> tuple[Cell, ...]:
    """The measured cells, and the shipped ones at other places as these correct them."""
    found: list[Cell] = []
    for deficient in (False, True):
        before, now = (
            [cell for cell in cells if (cell.rank is not None) == deficient]
            for cells in (shipped, measured)
        )
        places = {cell.position for cell in now}
        left = [cell for cell in before if cell.position not in places]
        # A shipped cell of the same place is the nearest: the others need not be searched for it.
        same = {cell.position: (cell,) for cell in reversed(before)}
        found += [_fill_missing_times(same.get(cell.position, before), cell) for cell in now]
        if left:
            near = [(same.get(cell.position, before), cell) for cell in now]
            changes = [(cell.position, _change(nearest, cell)) for nearest, cell in near]
            found += [
                _cell_from_costs(cell, _corrected(_logarithms(cell), cell.position, changes))
                for cell in left
            ]
    return tuple(found)


def estimate_costs(cells: Sequence[Cell], asked: Point, *, deficient: bool) -> Costs:
    """The logarithms of the times, over some unit, that cells say of a case; empty without cells."""
    near = closest((cell for cell in cells if (cell.rank is not None) == deficient), asked)
    return interpolated(near, asked) if near else {}


def _change(shipped: Sequence[Cell], measured: Cell) -> Costs:
    """The logarithm of time here over time shipped, without what all strategies share."""
    before = estimate_costs(shipped, measured.position, deficient=measured.rank is not None)
    changes = {
        name: math.log(time) - before[name]
        for name, time in measured.times.items()
        if name in before
    }
    shared = statistics.fmean(changes.values()) if changes else 0.0
    return {name: change - shared for name, change in changes.items()}


def _corrected(costs: Costs, asked: Point, changes: Sequence[tuple[Point, Costs]]) -> Costs:
    found = {}
    for name, cost in costs.items():
        known = [(math.dist(place, asked) ** -2, of[name]) for place, of in changes if name in of]
        known = sorted(known, reverse=True)[:4]
        whole = sum(weight for weight, _ in known) + REACH**-2
        found[name] = cost + sum(weight * change for weight, change in known) / whole
    return found


def _fill_missing_times(shipped: Sequence[Cell], measured: Cell) -> Cell:
    """A measured cell, with times of the strategies that were left out, by the shipped ones."""
    before = estimate_costs(shipped, measured.position, deficient=measured.rank is not None)
    shared = [
        math.log(measured.times[name]) - before[name] for name in before.keys() & measured.times
    ]
    if not shared:
        return measured
    unit = statistics.fmean(shared)
    left_out = {
        name: _rounded(math.exp(cost + unit))
        for name, cost in before.items()
        if name not in measured.times
    }
    return msgspec.structs.replace(measured, times={**measured.times, **left_out})


def _cell_from_costs(cell: Cell, costs: Costs) -> Cell:
    least = min(costs.values())
    times = {name: _rounded(math.exp(cost - least)) for name, cost in costs.items()}
    return msgspec.structs.replace(
        cell, use=min(costs, key=costs.__getitem__), ties=(), times=times
    )


def _logarithms(cell: Cell) -> Costs:
    return {name: math.log(time) for name, time in cell.times.items()}


def _stability(shipped: dict[str, Evidence], found: dict[str, Evidence]) -> dict[str, Evidence]:
    """The shipped evidence, and that of this machine where it is worse or all that there is."""
    told = {name: each for name, each in found.items() if name not in shipped or not each.is_stable}
    return {**shipped, **told}


def _rounded(ratio: float) -> float:
    return float(f"{ratio:.4g}")
