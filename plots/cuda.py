"""`python -m plots.cuda PAGE`: what was measured on a CUDA device, as a part of a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from plots import marked
from strategies.cli.common import reports_errors
from strategies.measuring import store
from strategies.measuring.case import Case
from strategies.measuring.measurement import Cell
from strategies.policy import BASELINE
from strategies.selection.text import number, provenance

PART = "cuda"
"""The name of the part of a page."""

MEASURED = Path("benchmarks/cuda/h100.json.gz")

HEAD = ("operation", "cases", "mean", "lowest", "of", "highest", "of")


@dataclass(frozen=True)
class Ratio:
    """The time of PyTorch's own over that of the fastest stable strategy, of a case that it names."""

    case: Case
    strategy: str
    value: float

    def __str__(self) -> str:
        return str(self.case).rpartition(" ")[0].partition(" ")[2]


def ratio(cell: Cell) -> Ratio | None:
    """Of a cell, if both ran."""
    times = {each.strategy: each.forward_backward for each in cell}
    found = {name: time.seconds for name, time in times.items() if time is not None}
    native = found.pop(BASELINE, None)
    if native is None or not found:
        return None
    fastest = min(found, key=found.__getitem__)
    return Ratio(cell.case, fastest, native / found[fastest])


def lines(ratios: Sequence[Ratio]) -> Iterator[tuple[str, ...]]:
    """The rows of the table: an operation each, the one with the lowest mean first."""
    by_operation: dict[str, list[Ratio]] = {}
    for each in ratios:
        by_operation.setdefault(each.case.operation, []).append(each)
    means = {
        operation: statistics.geometric_mean(each.value for each in of)
        for operation, of in by_operation.items()
    }
    for operation in sorted(means, key=means.__getitem__):
        of = sorted(by_operation[operation], key=lambda each: each.value)
        yield (
            f"`{operation}`",
            str(len(of)),
            number(means[operation], ".2f"),
            number(of[0].value, ".2f"),
            str(of[0]),
            number(of[-1].value, ".1f"),
            str(of[-1]),
        )


@reports_errors
def main(
    page: Annotated[Path, typer.Argument(metavar="PAGE", help="Whose part is written.")],
    results: Annotated[
        Path, typer.Option("--results", metavar="FILE", help="What `benchmarks.cuda` has measured.")
    ] = MEASURED,
) -> None:
    """Writes PyTorch's time over that of the fastest stable strategy into a page."""
    (run,) = store.load(results)
    ratios = [found for cell in run.cells if (found := ratio(cell))]
    table = marked.table(HEAD, lines(ratios), 1)
    marked.fill(page, {PART: "\n\n".join([table, *provenance([run.machine])])})


if __name__ == "__main__":
    typer.run(main)
