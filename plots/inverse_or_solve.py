"""`python -m plots.inverse_or_solve [PAGE...]`: whether to form an inverse or to solve, by results."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd
import typer

from plots import marked, rows
from strategies.builtin.batch_last import BatchLast
from strategies.builtin.explicit_inverse import ExplicitInverse
from strategies.builtin.fused import Fused
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors
from strategies.measuring import Objective, Run, store
from strategies.policy.schema import LIMIT, Evidence
from strategies.selection.stability import Stabilities, evidence
from strategies.selection.text import TOO_NOISY, number, provenance
from strategies.selection.verdicts import RESOLUTION, JudgedCell, judge, machines

PART, TABLES = "inverse or solve", "inverse or solve: tables"
"""The names of the parts of a page: the answer in a few lines, and the tables that it rests on."""

INVERSE, SOLVE, SVD = ExplicitInverse.name, TriangularSolve.name, SVDTruncatedPinv.name

SIMPLE = INVERSE, SOLVE, QRPinv.name, SVD
"""The strategies that are one idea each, in operations of torch."""

COMPILED = Fused.name, BatchLast.name

SIDE = 128
"""The shorter side n from which on a matrix counts as large."""

SIZES = SMALL, LARGE, BATCHES = f"n < {SIDE}", f"n ≥ {SIDE}", "batches"
"""Single matrices by size, and batches."""

BOTH, BACKWARD = Objective.FORWARD_BACKWARD, Objective.BACKWARD

Ratios = Mapping[str, "pd.Series[float]"]
"""By operation, the time of the inverse over that of solves, for some of `SIZES`."""


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
    cells = [cell for cell in every if not cell.is_busy]
    stability, cases = evidence(runs), _cases(rows.table(runs))
    compared = _medians(cases, "operation")
    inverse = {name: _evidence(stability, name, INVERSE) for name in compared}
    is_stable = cases["operation"].map(lambda name: inverse[name].is_stable)
    several = _medians(cases[is_stable.astype(bool)], ["operation", "rhs"])
    columns = [operation for operation, _ in several]
    of_several = [
        [f"`{operation}`", str(rhs), *_entries(of)]
        for (operation, rhs), of in sorted(several.items(), key=lambda item: item[0])
        if columns.count(operation) > 1
    ]
    where = (msgspec.structs.replace(machine, commit="") for machine in machines(cells))
    note = (
        f"Time of `{INVERSE}` over time of `{SOLVE}`, forward and backward together / the backward "
        "alone: medians over single matrices whose shorter side is n, and over batches. **Bold**: the "
        f"inverse is faster. (Parentheses): it may not be used. {'; '.join(provenance(where))}."
    )
    tables = [
        marked.table(
            ["operation", *SIZES, "the inverse is"],
            [_line(name, of, inverse[name]) for name, of in compared.items()],
            1,
        ),
        note,
        marked.table(["operation", "right-hand sides", *SIZES], of_several, 1),
    ]
    answer = "The machine was busy in all cases, whose times answer nothing: measure again."
    if cells:
        svd = _svd(cases, stability)
        answer = "\n\n".join([*_answer(compared, inverse, svd), _default(every)])
    return {PART: answer, TABLES: "\n\n".join(tables)}


def _cases(found: pd.DataFrame) -> pd.DataFrame:
    """A row a case: the two ratios of the inverse over solves, and the fastest of `SIMPLE`."""
    # What a busy machine measured would count like anything else in a median.
    timed = found[found["shows"].eq("time") & ~found["busy"]]
    cases = timed.drop_duplicates("case").set_index("case")
    both, backward = (
        timed.pivot(index="case", columns="strategy", values=column).reindex(columns=SIMPLE)
        for column in ("seconds", "backward_seconds")
    )
    n = cases[["m", "n"]].min(axis=1)
    size = n.lt(SIDE).map({True: SMALL, False: LARGE}).mask(cases["is_batch"].astype(bool), BATCHES)
    fastest = both.dropna(how="all").idxmin(axis=1)
    ratios = {each: of[INVERSE] / of[SOLVE] for each, of in ((BOTH, both), (BACKWARD, backward))}
    return cases.assign(n=n, size=size, fastest=fastest, **ratios)


def _medians(cases: pd.DataFrame, by: str | list[str]) -> dict[Any, pd.DataFrame]:
    """The medians of both ratios in each group, a line for each of `SIZES`."""
    return {
        key: own.groupby("size")[[BOTH, BACKWARD]].median().reindex(SIZES)
        for key, own in cases.groupby(by, sort=False)
    }


def _default(cells: Sequence[JudgedCell]) -> str:
    """How often a compiled kernel is the strategy to use, counted as `recommend` counts."""
    sure = [cell.chosen for cell in cells if cell.chosen and not cell.is_too_noisy]
    count = sum(chosen.strategy in COMPILED for chosen in sure)
    return (
        f"The default is a compiled kernel ({_names(COMPILED)}) in {count} of the {len(sure)} cases that "
        f"are not {TOO_NOISY}. It solves with its factors, and forms an inverse where that is the result "
        "or the gradient."
    )


def _answer(
    compared: Mapping[str, pd.DataFrame], inverse: Mapping[str, Evidence], svd: Iterable[str]
) -> Iterator[str]:
    """In one line, where there is one; and when to solve and when to form the inverse."""
    stable = {name: of for name, of in compared.items() if inverse[name].is_stable}
    single = {name: of.loc[[SMALL, LARGE], BOTH] for name, of in stable.items()}
    solved = {name: ratios for name, ratios in single.items() if (ratios > 1).all()}
    formed = {name: ratios for name, ratios in single.items() if (ratios < 1).all()}
    reused = {name: of[BACKWARD] for name, of in stable.items() if (of[BACKWARD] < 1).all()}
    if solved and (formed or reused):
        exceptions = [f"in {_names(formed)}"] if formed else []
        exceptions += ["where one forward serves many backwards"] if reused else []
        yield (
            f"**Solve, except {' and '.join(exceptions)}.** You need not choose: without `strategy=` the "
            "fastest stable strategy is used."
        )
    yield "Among PyTorch's own operations, in the median of cases:"
    unstable = {name: of.worst for name, of in inverse.items() if not of.is_stable}
    yield "\n".join(f"- {rule}" for rule in [*_rules(solved, formed, reused, unstable), *svd])


def _rules(
    solved: Ratios, formed: Ratios, reused: Ratios, unstable: Mapping[str, float]
) -> Iterator[str]:
    """When to solve and when to form the inverse, with the ratios that say so."""
    if solved:
        small, large = map(_span, zip(*solved.values(), strict=True))
        yield (
            f"**Solve** in {_names(solved)}: forward and backward by the inverse take {large} times as "
            f"long for single matrices with n ≥ {SIDE}, and {small} times for smaller n."
        )
    if formed:
        share = _span(itertools.chain(*formed.values()))
        yield f"**Form it** in {_names(formed)}: that takes {share} of the time of solves."
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


def _svd(cases: pd.DataFrame, stability: Stabilities) -> Iterator[str]:
    """For which single matrices of full rank a truncated SVD is the fastest simple strategy."""
    single = cases[cases["size"].ne(BATCHES) & ~cases["is_deficient"].astype(bool)]
    wins = single["fastest"].eq(SVD).groupby([single["operation"], single["n"]]).mean()
    most = wins[wins > 0.5].reset_index()
    if not most.empty:
        names = list(most["operation"].unique())
        worst = max(_evidence(stability, name, SVD).worst for name in names)
        yield (
            "**A truncated SVD** beats inverse, solves and QR only for small single matrices, in most "
            f"cases with n ≤ {most['n'].max()}, in {_names(names)}; its errors reach {worst:.0e} "
            "times what rounding explains."
        )


def _evidence(stability: Stabilities, operation: str, strategy: str) -> Evidence:
    return stability.get(operation, {}).get(strategy, Evidence(0, 0, 0.0, ""))


def _entries(of: pd.DataFrame) -> list[str]:
    """Both and the backward alone, of a size each."""
    return [" / ".join(map(_marked, pair)) for pair in of.to_numpy().tolist()]


def _line(operation: str, of: pd.DataFrame, inverse: Evidence) -> list[str]:
    if inverse.is_stable:
        return [f"`{operation}`", *_entries(of), "stable"]
    plain = (f"({entry.replace('*', '')})" for entry in _entries(of))
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
