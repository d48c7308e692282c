"""From verdicts to a policy, and what two policies disagree on."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from strategies import operations
from strategies.measuring import DTYPES, Case, Run
from strategies.policy import BASELINE, schema
from strategies.policy.schema import Cell, Default, Part, Point, Policy, PolicyKey, rounded
from strategies.policy.validators import Validators
from strategies.selection.eligibility import Criteria
from strategies.selection.stability import Stabilities, evidence
from strategies.selection.verdicts import JudgedCell, judge, machines, simplicity

FAR = 4.0
"""What takes so much longer than the fastest on another machine is not kept of it."""


def build(runs: Sequence[Run], criteria: Criteria, base: str | None = None) -> Policy:
    """The policy that follows from results: of one machine, or of `base`, beside which others are kept.

    ValueError says that the results hold several machines, which may well disagree, and none is named; or
    not the one that is named; or nothing that was timed as the criteria ask.
    """
    by_name = _grouped(judge(runs, criteria), lambda cell: cell.machine.name)
    named = ", ".join(sorted(by_name))
    if base is None:
        base, *others = by_name
        if others:
            raise ValueError(
                f"results of several machines ({named}): name the one that the policy is of as --base, "
                "or give one machine's folder as --results"
            )
    if base not in by_name:
        raise ValueError(f"no results of a machine {base}: there is {named}")
    stability = evidence(runs)
    judged = by_name.pop(base)
    by_operation = _grouped(judged, lambda cell: cell.case.operation)
    beside = {name: found for name, found in stability.items() if name not in by_operation}
    return Policy(
        operations={
            operation: schema.OperationPolicy(
                cells=_cells(cells),
                full_rank=single_default(full := [c for c in cells if c.case.rank is None]),
                any_rank=single_default(cells) if len(full) < len(cells) else None,
                stability=stability.get(operation, {}),
            )
            for operation, cells in sorted(by_operation.items())
        },
        criteria=msgspec.to_builtins(criteria),
        provenance=tuple(msgspec.to_builtins(machine) for machine in machines(judged)),
        others=tuple(part for name in sorted(by_name) for part in _parts(by_name[name], beside)),
    )


def single_default(cells: Iterable[JudgedCell]) -> Default | None:
    """The one strategy to keep if only one may be kept, and what that costs.

    Fewest cases in which it is ineligible come first, then the smallest worst regret. None where no
    strategy is eligible in any case.
    """
    decided = [cell for cell in cells if cell.chosen]
    regrets: dict[str, list[float]] = {}
    for cell in decided:
        for each in cell.judged:
            if each.is_eligible:
                regrets.setdefault(each.strategy, []).append(each.ratio)
    if not regrets:
        return None
    best, *then = sorted(
        regrets, key=lambda name: (-len(regrets[name]), max(regrets[name]), simplicity(name))
    )
    return Default(
        strategy=best,
        then=tuple(then),
        worst_regret=rounded(max(regrets[best])),
        mean_regret=rounded(math.exp(statistics.fmean(map(math.log, regrets[best])))),
        cells=len(decided),
        uncovered=len(decided) - len(regrets[best]),
    )


def entry_of(cell: JudgedCell) -> Cell:
    """What a policy says of a case in which some strategy, then the first, is chosen."""
    case = cell.case
    return Cell(
        *(*case.shape, case.rhs, case.batch, case.rank),
        use=cell.judged[0].strategy,
        ties=cell.ties,
        times={each.strategy: rounded(each.ratio) for each in cell.judged if each.is_eligible},
    )


def policy_key(case: Case) -> PolicyKey:
    """A case as a policy is asked about it."""
    operation = operations.get(case.operation).policy_operation
    return (operation, *case.shape, case.rhs, case.batch, case.dtype_name, case.device)


def position_of(case: Case) -> Point:
    """Where a case lies in a policy."""
    return schema.position(*case.shape, case.rhs, case.batch)


def by_case(policy: Policy) -> dict[Case, Cell]:
    """Every cell of a policy."""
    return {
        Case(operation, (c.m, c.n), c.batch, DTYPES[dtype], device, c.rhs, rank=c.rank): c
        for operation, entry in policy.operations.items()
        for device, by_dtype in entry.cells.items()
        for dtype, cells in by_dtype.items()
        for c in cells
    }


@dataclass(frozen=True)
class Difference:
    """What two policies say of a case."""

    case: Case
    old: Cell
    new: Cell

    @property
    def is_change(self) -> bool:
        return self.old.use != self.new.use

    @property
    def is_tie(self) -> bool:
        """Whether a policy that could not tell strategies apart has the other's choice among them."""
        if self.is_change:
            return self.old.use in self.new.ties or self.new.use in self.old.ties
        return bool(self.old.ties or self.new.ties)


def differences(old: Policy, new: Policy) -> list[Difference]:
    """The cells that two policies share, side by side, also those that agree."""
    before, after = by_case(old), by_case(new)
    return [Difference(case, before[case], after[case]) for case in before if case in after]


def _grouped(
    cells: Iterable[JudgedCell], key: Callable[[JudgedCell], str]
) -> dict[str, list[JudgedCell]]:
    found: dict[str, list[JudgedCell]] = {}
    for cell in cells:
        found.setdefault(key(cell), []).append(cell)
    return found


def _cells(cells: Sequence[JudgedCell]) -> dict[str, dict[str, tuple[Cell, ...]]]:
    """By kind of device and dtype, the cells that have an eligible strategy."""
    found: dict[str, dict[str, dict[Case, Cell]]] = {}
    for cell in cells:
        if cell.chosen:
            device = cell.case.device_kind
            by_sizes = found.setdefault(device, {}).setdefault(cell.case.dtype_name, {})
            # Several devices of a kind: the first one stands for all.
            by_sizes.setdefault(replace(cell.case, device=device), entry_of(cell))
    return {
        device: {dtype: tuple(by_sizes.values()) for dtype, by_sizes in by_dtype.items()}
        for device, by_dtype in found.items()
    }


def _parts(cells: Sequence[JudgedCell], stability: Stabilities) -> Iterator[Part]:
    """What another machine says, a part a kind of device; with the stability of these operations."""
    machine = machines(cells)[-1]
    found: dict[str, dict[str, dict[str, tuple[Cell, ...]]]] = {}
    for operation, own in sorted(_grouped(cells, lambda cell: cell.case.operation).items()):
        for device, by_dtype in _cells(own).items():
            near = {dtype: tuple(map(_without_far, of)) for dtype, of in by_dtype.items()}
            found.setdefault(device, {})[operation] = near
    for device, by_operation in found.items():
        gpu = machine.gpu.partition(", ")[0] if device == "cuda" else ""
        validators = Validators(
            machine.cpu, machine.instruction_set, machine.torch, machine.blas, "", gpu
        )
        yield Part(
            validators=validators,
            device=device,
            threads=max(machine.threads, 1),
            machine=msgspec.to_builtins(machine),
            cells=by_operation,
            stability={name: stability[name] for name in by_operation if name in stability},
        )


def _without_far(cell: Cell) -> Cell:
    times = {name: time for name, time in cell.times.items() if name == BASELINE or time < FAR}
    return msgspec.structs.replace(cell, times=times)
