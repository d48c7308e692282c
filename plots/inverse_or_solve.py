"""`python -m plots.inverse_or_solve [PAGE...]`: whether to form an inverse or to solve, by results."""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import typer

from plots import marked
from strategies.builtin.explicit_inverse import ExplicitInverse
from strategies.builtin.fused import Fused
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors
from strategies.measuring import Case, Cell, Objective, Run, store
from strategies.policy.schema import LIMIT, Evidence
from strategies.selection.stability import Stabilities, evidence
from strategies.selection.text import TOO_NOISY, number, provenance
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

Key = TypeVar("Key", str, tuple[str, int])

BOTH, BACKWARD = Objective.FORWARD_BACKWARD, Objective.BACKWARD


class Comparison(NamedTuple):
    """The time of the inverse over that of solves: medians for each of `SIZES`, NaN where no case is."""

    both: Sequence[float]
    backward: Sequence[float]

    @property
    def single(self) -> Sequence[float]:
        """Of forward and backward of small and of large single matrices."""
        return self.both[:2]

    def entries(self) -> list[str]:
        """Both and the backward alone, of a size each."""
        return [" / ".join(map(_marked, pair)) for pair in zip(*self, strict=True)]


@reports_errors
def main(
    pages: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PAGE...", help="With the answer, or its tables, too; printed if none."
        ),
    ] = None,
    results: Results = DEFAULT_RESULTS,
) -> None:
    """Replace what pages hold between markers by the answer that the results give now."""
    found = parts(store.load(results))
    if not pages:
        typer.echo(found[PART])
    for page in pages or ():
        has_tables = marked.has(page, TABLES)
        marked.fill(page, found if has_tables else {PART: found[PART]})


def parts(runs: Sequence[Run]) -> dict[str, str]:
    """The answer in a few lines, and its tables; ValueError if no case was timed."""
    every = judge(runs)
    # What a busy machine measured would count like anything else in a median.
    cells = [cell for cell in every if not cell.is_busy]
    stability = evidence(runs)
    compared = _compared(cells, lambda case: case.operation)
    inverse = {name: _evidence(stability, name, INVERSE) for name in compared}
    lines = [*_rules(compared, inverse), *_svd(cells, stability)]
    by_operation = [_line(name, of, inverse[name]) for name, of in compared.items()]
    stable = [cell for cell in cells if inverse[cell.case.operation].is_stable]
    by_columns = _compared(stable, lambda case: (case.operation, case.rhs))
    columns = Counter(operation for operation, _ in by_columns)
    of_several = [
        [f"`{operation}`", str(rhs), *of.entries()]
        for (operation, rhs), of in sorted(by_columns.items())
        if columns[operation] > 1
    ]
    where = (msgspec.structs.replace(machine, commit="") for machine in machines(cells))
    note = (
        f"Time of `{INVERSE}` over time of `{SOLVE}`, forward and backward together / the backward "
        "alone: medians over single matrices whose shorter side is n, and over batches. **Bold**: the "
        f"inverse is faster. (Parentheses): it may not be used. {'; '.join(provenance(where))}."
    )
    rules = "\n".join(f"- {line}" for line in lines)
    lead = _lead(compared, inverse)
    answer = [
        *lead,
        "Among PyTorch's own operations, in the median of cases:",
        rules,
        _default(every),
    ]
    if not cells:
        answer = ["The machine was busy in all cases, whose times answer nothing: measure again."]
    tables = [
        marked.table(["operation", *SIZES, "the inverse is"], by_operation, 1),
        note,
        marked.table(["operation", "right-hand sides", *SIZES], of_several, 1),
    ]
    return {PART: "\n\n".join(answer), TABLES: "\n\n".join(tables)}


def _compared(cells: Iterable[JudgedCell], key: Callable[[Case], Key]) -> dict[Key, Comparison]:
    groups: dict[Key, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[key(cell.case)].append(cell.cell)
    return {
        name: Comparison(_medians(own, BOTH), _medians(own, BACKWARD))
        for name, own in groups.items()
    }


def _medians(cells: Sequence[Cell], objective: Objective) -> list[float]:
    found = []
    for is_of_size in SIZES.values():
        own = (cell for cell in cells if is_of_size(cell.case))
        ratios = [cell.speedup(INVERSE, SOLVE, objective)[0] for cell in own]
        known = [ratio for ratio in ratios if ratio > 0]
        found.append(statistics.median(known) if known else math.nan)
    return found


def _default(cells: Sequence[JudgedCell]) -> str:
    """How often compiled kernels are the strategy to use, counted as `recommend` counts."""
    sure = [cell.chosen for cell in cells if cell.chosen and not cell.is_too_noisy]
    count = sum(chosen.strategy == Fused.name for chosen in sure)
    noisy = sum(cell.is_too_noisy for cell in cells)
    return (
        f"The default is `{Fused.name}`, compiled kernels, in {count} of {len(cells)} cases ({noisy} "
        f"are {TOO_NOISY}). They solve with their factors, and form an inverse where that is the result or "
        "the gradient."
    )


class _Stable(NamedTuple):
    """The operations whose inverse is stable and, of single matrices of all sizes, slower or faster."""

    solved: Mapping[str, Sequence[float]]
    formed: Mapping[str, Sequence[float]]
    reused: Mapping[str, Sequence[float]]  # faster in the backward alone

    @classmethod
    def of(cls, compared: Mapping[str, Comparison], inverse: Mapping[str, Evidence]) -> "_Stable":
        stable = {name: of for name, of in compared.items() if inverse[name].is_stable}
        return cls(
            {name: of.single for name, of in stable.items() if all(r > 1 for r in of.single)},
            {name: of.single for name, of in stable.items() if all(r < 1 for r in of.single)},
            {name: of.backward for name, of in stable.items() if all(r < 1 for r in of.backward)},
        )


def _lead(compared: Mapping[str, Comparison], inverse: Mapping[str, Evidence]) -> Iterator[str]:
    """The answer in one line, where there is one."""
    solved, formed, reused = _Stable.of(compared, inverse)
    if solved and (formed or reused):
        exceptions = ["is the result"] * bool(formed) + ["serves many backwards"] * bool(reused)
        where = " or ".join(exceptions)
        yield f"**Solve, unless the inverse {where}**; without `strategy=`, a call chooses."


def _rules(compared: Mapping[str, Comparison], inverse: Mapping[str, Evidence]) -> Iterator[str]:
    """When to solve and when to form the inverse, with the ratios that say so."""
    solved, formed, reused = _Stable.of(compared, inverse)
    unstable = {name: of.worst for name, of in inverse.items() if not of.is_stable}
    if solved:
        small, large = map(_span, zip(*solved.values(), strict=True))
        yield (
            f"**Solve** in {_names(solved)}: forward and backward by the inverse take {large} times as "
            f"long for single matrices with n ≥ {SIDE}, and {small} times for smaller n."
        )
    if formed:
        share = _span(itertools.chain(*formed.values()))
        yield f"**Form it** where it is the result, in {_names(formed)}: that takes {share} of the time."
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
            "**A truncated SVD** beats inverse, solves and QR only for small single matrices, in most "
            f"cases with n ≤ {max(n for _, n in most)}, in {_names(names)}; its errors reach {worst:.0e} "
            "times what rounding explains."
        )


def _fastest_simple(cell: Cell) -> str:
    """The fastest of `SIMPLE`; empty where none ran."""
    costs = cell.costs(BOTH)
    simple = [name for name in costs if name in SIMPLE]
    return min(simple, key=lambda name: costs[name].seconds, default="")


def _evidence(stability: Stabilities, operation: str, strategy: str) -> Evidence:
    return stability.get(operation, {}).get(strategy, Evidence(0, 0, 0.0, ""))


def _line(operation: str, of: Comparison, inverse: Evidence) -> list[str]:
    if inverse.is_stable:
        return [f"`{operation}`", *of.entries(), "stable"]
    plain = (f"({entry.replace('*', '')})" for entry in of.entries())
    return [f"`{operation}`", *plain, f"unstable, {inverse.worst:.0e}"]


def _marked(ratio: float) -> str:
    """Two digits, bold where the inverse is faster by more than timings resolve."""
    text = number(ratio, ".2g")
    return f"**{text}**" if ratio < 1 / RESOLUTION else text


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
