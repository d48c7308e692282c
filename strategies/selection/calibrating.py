"""From a plan to measured cells, from these to a part of a calibration, and what that changes."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from strategies import operations
from strategies.measuring import Case, Cell, Machine, Objective, Writer
from strategies.measuring.race import race
from strategies.measuring.stability import judged_cells
from strategies.policy.schema import Cell as PolicyCell
from strategies.policy.schema import Part, Policy, rounded
from strategies.policy.validators import here
from strategies.selection.draws import hard_cases
from strategies.selection.eligibility import ANY, why_ineligible
from strategies.selection.planning import DOUBT, Plan, shipped_costs
from strategies.selection.regret import choice_in, regrets
from strategies.selection.stability import Stabilities, evidence_in, summary
from strategies.selection.verdicts import RESOLUTION, simplicity

CELL_BUDGET = 0.5
"""Seconds for the rounds of a case in which the order does not get clear."""

_REPEATABLE = 0.02
"""How far a measurement is off at least, whatever its interval says."""


def measured(
    plan: Plan,
    writer: Writer,
    seconds: float,
    *,
    beside: Sequence[str] = (),
    begins: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Cell]:
    """Measures what a plan asks for until that is clear, or the time is up.

    A case that was begun is finished. The cells go to the writer's file, and those that it holds already
    are not measured again. Strategies that are named `beside` are measured in every case.
    """
    for cell in writer.cells:
        plan.add(cell.case, decided(cell, plan.shipped))
    deadline = clock() + seconds
    while clock() < deadline and (case := plan.next()) is not None:
        begins(f"{len(writer.cells)} cells measured: {case}")
        names = dict.fromkeys((*beside, *plan.contenders(case)))
        cell = race(case, list(names), budget=CELL_BUDGET)
        writer.append(cell)
        plan.add(case, decided(cell, plan.shipped))
    return writer.cells


def decided(cell: Cell, known: Policy) -> PolicyCell | None:
    """What a measured cell says of the strategies that may be used; None where none may.

    Each ratio to the fastest is tempered by what the shipped policy expects: both count by the inverse
    squares of their uncertainties, `DOUBT` and half of the interval that was measured. A machine that
    is not quiet thus changes little, and a clear measurement is taken as it is.
    """
    case = cell.case
    reasons = why_ineligible(cell, evidence_in(known, case), ANY)
    costs = cell.costs(Objective.FORWARD_BACKWARD)
    timings = {name: cost for name, cost in costs.items() if not reasons[name]}
    if not timings:
        return None
    unit = min(timings, key=lambda name: timings[name].seconds)
    expected = shipped_costs(known, case)
    found = {}
    for name, timing in timings.items():
        found[name] = math.log(timing.seconds / timings[unit].seconds)
        if name != unit and name in expected and unit in expected:
            spread = max(math.log(timing.high / timing.low) / 2, _REPEATABLE)
            weight = DOUBT**2 / (DOUBT**2 + spread**2)
            found[name] += (1 - weight) * (expected[name] - expected[unit] - found[name])
    best = min(found, key=found.__getitem__)
    times = {name: rounded(math.exp(cost - found[best])) for name, cost in found.items()}
    ties = tuple(name for name, time in times.items() if name != best and time <= RESOLUTION)
    return PolicyCell(*case.shape, case.rhs, case.batch, case.rank, best, ties, times)


def checked(
    chosen: dict[str, Sequence[str]],
    device: str,
    dtypes: Sequence[str],
    seconds: float,
    *,
    begins: Callable[[str], None] = lambda _: None,
) -> Stabilities:
    """The stability, on this machine, of the strategies that are to be used, by operation.

    After so many seconds no further hard case begins, once there is one of every operation.
    """
    cells: list[Cell] = []
    seen: set[str] = set()
    deadline = time.monotonic() + seconds
    for case in hard_cases(device, 0, list(chosen), dtypes) if chosen else ():
        if time.monotonic() >= deadline and seen >= chosen.keys():
            break
        begins(f"{len(cells)} hard cases judged: {case}")
        cells += judged_cells([case], chosen[case.operation])
        seen.add(case.operation)
    return summary(cells)


def part(
    cells: Iterable[Cell], known: Policy, stability: Stabilities, machine: Machine, device: str
) -> Part:
    """What was measured here, as a part of a calibration."""
    found: dict[str, dict[str, list[PolicyCell]]] = {}
    for cell in cells:
        if (entry := decided(cell, known)) is not None:
            by_dtype = found.setdefault(operations.get(cell.case.operation).policy_operation, {})
            by_dtype.setdefault(cell.case.dtype_name, []).append(entry)
    return Part(
        validators=here(device),
        device=device,
        threads=machine.threads,
        machine=msgspec.to_builtins(machine),
        cells={name: {d: tuple(c) for d, c in by.items()} for name, by in sorted(found.items())},
        stability=stability,
    )


def used(policy: Policy, device: str, among: Iterable[str]) -> dict[str, Sequence[str]]:
    """By operation, the strategies that the cells of a policy use, from simple to elaborate."""
    found: dict[str, Sequence[str]] = {}
    for name in among:
        by_dtype = policy.of(operations.get(name).policy_operation).cells.get(device, {})
        names = {cell.use for cells in by_dtype.values() for cell in cells}
        if names:
            found[name] = sorted(names, key=simplicity)
    return found


@dataclass(frozen=True)
class Change:
    """What a calibration changes in a measured case: the strategy that is used."""

    cell: Cell
    before: str
    after: str
    gain: float
    """How many times faster that is. One half of the rounds says which is the fastest, the other by how
    much."""

    @property
    def case(self) -> Case:
        return self.cell.case


def changes(cells: Iterable[Cell], old: Policy, new: Policy) -> Iterator[Change]:
    """What is used in measured cases by two policies, where both were measured."""
    for cell in cells:
        before, after = choice_in(cell, old), choice_in(cell, new)
        timings = cell.costs(Objective.FORWARD_BACKWARD)
        if before in timings and after in timings:
            regret = regrets({name: timings[name] for name in {before, after}})
            yield Change(cell, before, after, regret[before] / regret[after])


def mean_gain(found: Iterable[Change]) -> float:
    """The geometric mean."""
    return statistics.geometric_mean([each.gain for each in found] or [1.0])
