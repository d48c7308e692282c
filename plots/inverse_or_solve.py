"""`python -m plots.inverse_or_solve PAGE...`: whether to form an inverse or to solve, by results."""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from plots import marked
from strategies.builtin.explicit_inverse import ExplicitInverse
from strategies.builtin.fused import Fused
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors
from strategies.measuring import store
from strategies.measuring.case import Case
from strategies.measuring.measurement import Cell, Objective
from strategies.measuring.store import Run
from strategies.policy.schema import LIMIT, Evidence
from strategies.selection.stability import Stabilities, evidence
from strategies.selection.text import number, provenance
from strategies.selection.verdicts import RESOLUTION, JudgedCell, judge, machines

PART, TABLES = "inverse or solve", "inverse or solve: tables"
"""The names of the parts of a page: the answer in a few lines, and the tables that it rests on."""

INVERSE, SOLVE, SVD = ExplicitInverse.name, TriangularSolve.name, SVDTruncatedPinv.name

SIMPLE = INVERSE, SOLVE, QRPinv.name, SVD
"""The strategies that are one idea each, in operations of torch."""

SIDE = 128
"""The shorter side n from which on a matrix counts as large."""

SIZES: Mapping[str, Callable[[Case], bool]] = {
    f"n < {SIDE}": lambda case: not case.batch and min(case.shape) < SIDE,
    f"n ≥ {SIDE}": lambda case: not case.batch and min(case.shape) >= SIDE,
    "batches": lambda case: case.batch > 0,
}
"""Single matrices by size, and batches."""

BOTH, BACKWARD = Objective.FORWARD_BACKWARD, Objective.BACKWARD


@dataclass(frozen=True)
class Comparison:
    """The time of the inverse over that of solves: medians for each of `SIZES`, NaN where no case is."""

    operation: str
    both: Sequence[float]
    backward: Sequence[float]
    stability: Evidence

    @property
    def single(self) -> Sequence[float]:
        """Of forward and backward of small and of large single matrices."""
        return self.both[:2]


@reports_errors
def main(
    pages: Annotated[
        list[Path], typer.Argument(metavar="PAGE...", help="With the answer, or its tables, too.")
    ],
    results: Results = DEFAULT_RESULTS,
) -> None:
    """Replace what pages hold between markers by the answer that the results give now."""
    found = parts(store.load(results))
    for page in pages:
        has_tables = marked.has(page, TABLES)
        marked.fill(page, found if has_tables else {PART: found[PART]})


def parts(runs: Sequence[Run]) -> dict[str, str]:
    """The answer in a few lines, and its tables; ValueError if no case was timed."""
    # What a busy machine measured would count like anything else in a median.
    cells = [cell for cell in judge(runs) if not cell.is_busy]
    stability = evidence(runs)
    compared = _compared(cells, stability)
    lines = [*_rules(compared), *_svd(cells, stability)]
    by_operation = marked.table(["operation", *SIZES, "the inverse is"], map(_line, compared), 1)
    stable = {each.operation for each in compared if each.stability.is_stable}
    head = ["operation", "right-hand sides", *SIZES]
    by_columns = marked.table(
        head, _by_columns(cell for cell in cells if cell.case.operation in stable), 1
    )
    where = (msgspec.structs.replace(machine, commit="") for machine in machines(cells))
    note = (
        f"Time of `{INVERSE}` over time of `{SOLVE}`, forward and backward together / the backward "
        "alone: medians over single matrices whose shorter side is n, and over batches. **Bold**: the "
        f"inverse is faster. (Parentheses): it may not be used. {'; '.join(provenance(where))}."
    )
    return {
        PART: "\n\n".join([_default(cells), "\n".join(f"- {line}" for line in lines)]),
        TABLES: "\n\n".join([by_operation, note, by_columns]),
    }


def _by_columns(cells: Iterable[JudgedCell]) -> Iterator[list[str]]:
    """A line for each number of right-hand sides, of the operations that were timed with several."""
    by_columns: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in cells:
        by_columns[cell.case.operation, cell.case.rhs].append(cell.cell)
    for (operation, columns), own in sorted(by_columns.items()):
        if sum(name == operation for name, _ in by_columns) > 1:
            entries = _entries(_medians(own, BOTH), _medians(own, BACKWARD))
            yield [f"`{operation}`", str(columns), *entries]


def _entries(both: Iterable[float], backward: Iterable[float]) -> list[str]:
    """Pairs of two digits, bold where the inverse is faster by more than timings resolve."""
    marked = (
        [f"**{ratio:.2g}**" if ratio < 1 / RESOLUTION else number(ratio, ".2g") for ratio in ratios]
        for ratios in (both, backward)
    )
    return [" / ".join(pair) for pair in zip(*marked, strict=True)]


def _compared(cells: Iterable[JudgedCell], stability: Stabilities) -> list[Comparison]:
    by_operation: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_operation[cell.case.operation].append(cell.cell)
    return [
        Comparison(
            operation,
            _medians(own, BOTH),
            _medians(own, BACKWARD),
            _evidence(stability, operation, INVERSE),
        )
        for operation, own in by_operation.items()
    ]


def _medians(cells: Sequence[Cell], objective: Objective) -> list[float]:
    found = []
    for is_of_size in SIZES.values():
        own = (cell for cell in cells if is_of_size(cell.case))
        ratios = [cell.speedup(INVERSE, SOLVE, objective)[0] for cell in own]
        known = [ratio for ratio in ratios if ratio > 0]
        found.append(statistics.median(known) if known else math.nan)
    return found


def _default(cells: Sequence[JudgedCell]) -> str:
    count = sum(cell.chosen is not None and cell.chosen.strategy == Fused.name for cell in cells)
    return (
        f"The default is `{Fused.name}`, compiled kernels, in {count} of {len(cells)} cases. They solve "
        "with their factors, and form an inverse where that is the result or the gradient. "
        "Between the two, in PyTorch's operations:"
    )


def _rules(compared: Iterable[Comparison]) -> Iterator[str]:
    """When to solve and when to form the inverse, with the ratios that say so."""
    stable = [each for each in compared if each.stability.is_stable]
    unstable = {each.operation: each.stability.worst for each in compared if each not in stable}
    solved = {each.operation: each.single for each in stable if all(r > 1 for r in each.single)}
    formed = {each.operation: each.single for each in stable if all(r < 1 for r in each.single)}
    reused = {each.operation: each.backward for each in stable if all(r < 1 for r in each.backward)}
    if solved:
        small, large = map(_span, zip(*solved.values(), strict=True))
        yield (
            f"**Solve** in {_names(solved)}, for one backward per forward: with the inverse, both together "
            f"take {small} times as long for single matrices with n < {SIDE}, and {large} times for "
            "larger n."
        )
    if formed:
        share = _span(itertools.chain(*formed.values()))
        yield f"**Form it** where it is the result, in {_names(formed)}: {share} of the time."
    if reused:
        share = _span(itertools.chain(*reused.values()))
        yield (
            f"**Form it** where one forward serves many backwards, in {_names(reused)}: a backward takes "
            f"{share} of the time."
        )
    if unstable:
        yield (
            f"**Never** form (AᴴA)⁻¹Aᴴ by the normal equations, in {_names(unstable)}: its errors reach "
            f"{max(unstable.values()):.0e} times what rounding the inputs explains (limit {LIMIT:.0f})."
        )


def _svd(cells: Iterable[JudgedCell], stability: Stabilities) -> Iterator[str]:
    """For which single matrices of full rank a truncated SVD is the fastest simple strategy."""
    won: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for cell in cells:
        if not cell.case.batch and cell.case.rank is None:
            key = cell.case.operation, min(cell.case.shape)
            won[key].append(_fastest_simple(cell.cell) == SVD)
    if most := [key for key, wins in won.items() if 2 * sum(wins) > len(wins)]:
        names = list(dict.fromkeys(operation for operation, _ in most))
        worst = max(_evidence(stability, name, SVD).worst for name in names)
        yield (
            f"**A truncated SVD** is the fastest of inverse, solves, QR and SVD only for most single "
            f"{_names(names)} with n ≤ {max(n for _, n in most)}; its errors reach {worst:.0e} times that."
        )


def _fastest_simple(cell: Cell) -> str:
    """The fastest of `SIMPLE`; empty where none ran."""
    costs = {each.strategy: each.cost(BOTH) for each in cell if each.strategy in SIMPLE}
    times = {name: cost.seconds for name, cost in costs.items() if cost}
    return min(times, key=times.__getitem__, default="")


def _evidence(stability: Stabilities, operation: str, strategy: str) -> Evidence:
    return stability.get(operation, {}).get(strategy, Evidence(0, 0, 0.0, ""))


def _line(of: Comparison) -> list[str]:
    entries = _entries(of.both, of.backward)
    if of.stability.is_stable:
        return [f"`{of.operation}`", *entries, "stable"]
    plain = (f"({entry.replace('*', '')})" for entry in entries)
    return [f"`{of.operation}`", *plain, f"unstable, {of.stability.worst:.0e}"]


def _span(ratios: Iterable[float]) -> str:
    """As "0.78 to 0.94"."""
    known = list(ratios)
    ends = (f"{end(known):.2g}" for end in (min, max))
    return " to ".join(dict.fromkeys(ends))


def _names(operations: Iterable[str]) -> str:
    """As "`lstsq` and `pinv`"."""
    *others, last = (f"`{name}`" for name in operations)
    return f"{', '.join(others)} and {last}" if others else last


if __name__ == "__main__":
    typer.run(main)
