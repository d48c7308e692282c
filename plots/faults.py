"""`python -m plots.faults PAGE`: which of the faults on a page the installed release of torch has."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from plots import marked
from plots.rows import table
from plots.stability_table import counts
from strategies.cli.common import reports_errors
from strategies.measuring import store
from strategies.policy import BASELINE
from strategies.selection.text import NOTHING

NAME = "faults"
"""Of the markers between which the table stands, and of the chapter from which examples are taken."""
RIGHT_BELOW = 0.1
"""A relative error. The examples that are wrong have no digit."""

_CHAPTER = re.compile(rf"<!-- {NAME}: end -->(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^### (.*?)$(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@reports_errors
def main(
    page: marked.Page,
    hard: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="What `stability --strategy native --out` has kept."),
    ] = None,
) -> None:
    """Run the page's examples, and put what is found into the column of the installed torch."""
    column = examples(page.read_text(encoding="utf-8"))
    if hard:
        column |= hard_cases(hard)
    marked.fill(page, {NAME: with_column(marked.part(page, NAME), version(), column)})


def version() -> str:
    """The installed release of torch, as 2.13.0."""
    return str(torch.__version__).partition("+")[0]


def examples(text: str) -> dict[str, str]:
    """The relative error of what torch computes in each section below the table, bold if no digit is right.

    An example names what torch computes `gradient` or `rank`, and what is due `exact`.
    """
    namespace: dict[str, Any] = {"torch": torch}
    found = {}
    for chapter in _CHAPTER.findall(text):
        for title, section in _SECTION.findall(f"### \n{chapter}"):
            for code in _BLOCK.findall(section):
                exec(code, namespace)  # noqa: S102 - the page is the project's own
            computed = namespace.pop("gradient", namespace.pop("rank", None))
            if computed is not None:
                found[title] = _entry(computed, namespace.pop("exact"))
    return found


def _entry(computed: torch.Tensor, exact: torch.Tensor) -> str:
    # By the largest element: squares may leave the range.
    error = ((computed - exact).abs().max() / exact.abs().max()).item()
    if error < RIGHT_BELOW:
        return f"{error:.0e}" if error else "0"
    return f"**{error:.0e}**" if math.isfinite(error) else "**∞**"


def hard_cases(path: Path) -> dict[str, str]:
    """Of each operation how many hard cases are above the limit; ValueError of another release of torch."""
    runs = store.load(path)
    if others := {run.machine.torch for run in runs if not run.machine.torch.startswith(version())}:
        raise ValueError(f"{path} was judged with torch {others.pop()}, and this is {version()}")
    rows = table(runs)
    rows = rows[rows["shows"].eq("stability") & rows["strategy"].eq(BASELINE)]
    return {f"`{name}`, hard cases": counts(own) for name, own in rows.groupby("operation")}


def with_column(text: str, name: str, column: Mapping[str, str]) -> str:
    """A table with a column, new or in the place of the one of that name; columns are in order."""
    head, _, *lines = [_cells(line) for line in text.splitlines()] or [["fault"], []]
    columns = {other: {line[0]: line[i] for line in lines} for i, other in enumerate(head) if i}
    columns[name] = {**columns.get(name, {}), **column}
    names = sorted(columns, key=lambda each: [int(part) for part in re.findall(r"\d+", each)])
    faults = dict.fromkeys([line[0] for line in lines] + list(column))
    entries = [[fault, *(columns[each].get(fault, NOTHING) for each in names)] for fault in faults]
    return marked.table([head[0], *names], entries, left=1)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


if __name__ == "__main__":
    typer.run(main)
