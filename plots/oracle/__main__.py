"""`python -m plots.oracle PAGE --reports DIR --figures DIR`: reports of `oracle grade`, in a page."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from plots import marked
from plots.figures import save
from plots.oracle.figure import draw
from strategies.cli.common import reports_errors
from strategies.errors import UnusableFileError
from strategies.files.documents import decoded, json_files
from strategies.oracle.grader import REFUSES, RIGHT, UNSTABLE, WRONG
from strategies.oracle.report import Entry, Report
from strategies.selection.text import NOTHING

FIRST = ("strategies", "PyTorch")
"""Whose columns come first, in this order; others follow by name."""


@reports_errors
def main(
    page: marked.Page,
    reports: Annotated[Path, typer.Option(metavar="DIR")] = Path("docs/data/oracle"),
    figures: marked.Figures = Path("out/figures"),
) -> None:
    """Draw the figure, and put the tables between the markers of a page."""
    found = sorted((decoded(path, Report) for path in json_files(reports)), key=_place)
    versions = [each for each in found if each.library.startswith("PyTorch")]
    # Of PyTorch's versions the one that ours was judged with stands for it.
    ours = next((each.library for each in found if each.library.startswith("strategies")), None)
    if ours is None:
        raise UnusableFileError(reports, "has no report of this package")
    own = [each for each in versions if each.library.split()[1] in ours]
    libraries = [each for each in found if each not in versions or each in own]
    save(draw, libraries, figures / "oracle")
    parts = {"libraries": _libraries(libraries), "failures": _failures(libraries)}
    marked.fill(page, {**parts, "versions": _versions(versions)})


def _place(report: Report) -> tuple[int, str, list[int]]:
    name = report.library.split()[0].rstrip(",")
    version = [int(number) for number in re.findall(r"\d+", report.library)]
    return FIRST.index(name) if name in FIRST else len(FIRST), name, version


def _libraries(reports: Sequence[Report]) -> str:
    """A line a library: how many answers of each verdict."""
    verdicts = (RIGHT, UNSTABLE, WRONG, REFUSES)
    lines = []
    for report in reports:
        counts = (sum(entry.counts[name] for entry in report.entries) for name in verdicts)
        lines.append([report.library, str(6 * report.cases), *map(str, counts)])
    return marked.table(["library", "cases of an operation, up to", *verdicts], lines, 1)


def _failures(reports: Sequence[Report]) -> str:
    """Folded, a table a library of what is unstable or wrong."""
    head = ["operation", "derivative", "worst in", "smallest", "unstable", "wrong", "of", "worst"]
    return "\n\n".join(
        marked.folded(report.library, marked.table(head, lines, 4))
        for report in reports
        if (lines := [*_lines(report)])
    )


def _lines(report: Report) -> Iterator[list[str]]:
    for entry in report.entries:
        if entry.smallest is not None:
            answered = sum(entry.counts[name] for name in (RIGHT, UNSTABLE, WRONG))
            counts = [str(entry.counts[name] or NOTHING) for name in (UNSTABLE, WRONG)]
            places = [f"`{entry.worst_case}`", f"`{entry.smallest}`"]
            yield [*_named(entry), *places, *counts, str(answered), _ratio(entry)]


def _versions(reports: Sequence[Report]) -> str:
    """A line an operation and derivative that fails in one version: how often in each."""
    by_key = [{(e.operation, e.quantity): e for e in report.entries} for report in reports]
    failing = {key: e for entries in by_key for key, e in entries.items() if e.smallest}
    lines = [
        [*_named(failing[key]), *(_failed(entries.get(key)) for entries in by_key)]
        for key in sorted(failing)
    ]
    names = [report.library.removeprefix("PyTorch ").partition("+")[0] for report in reports]
    return marked.table(["operation", "derivative", *names], lines, 2)


def _named(entry: Entry) -> tuple[str, str]:
    return f"`{entry.operation}`", entry.quantity.replace("_", " ")


def _failed(entry: Entry | None) -> str:
    if entry is None:
        return NOTHING
    return f"{entry.counts[UNSTABLE] + entry.counts[WRONG]}, {_ratio(entry)}"


def _ratio(entry: Entry) -> str:
    if entry.worst is None:
        return NOTHING
    if entry.worst >= 1e99:
        return "∞"
    return f"{entry.worst:.0e}" if entry.worst >= 100 else f"{entry.worst:.2g}"


if __name__ == "__main__":
    typer.run(main)
