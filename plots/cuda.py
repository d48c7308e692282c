"""`python -m plots.cuda PAGE`: what was measured on a CUDA device, as a part of a page."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from plots import marked
from strategies.cli.common import reports_errors
from strategies.measuring import Case, Cell, Objective, store
from strategies.policy import BASELINE
from strategies.selection.text import provenance

MEASURED = Path("benchmarks/cuda/h100.json.gz")

HEAD = ("operation", "cases", "mean", "lowest", "of", "highest", "of")


def ratio(cell: Cell) -> float | None:
    """The time of PyTorch's own over that of the fastest other strategy, if both ran."""
    costs = cell.costs(Objective.FORWARD_BACKWARD)
    found = {name: cost.seconds for name, cost in costs.items()}
    native = found.pop(BASELINE, None)
    return native / min(found.values()) if native is not None and found else None


def lines(cells: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    """The rows of the table: an operation each, the one with the lowest mean first."""
    by_operation: dict[str, dict[Case, float]] = defaultdict(dict)
    for cell in cells:
        if found := ratio(cell):
            by_operation[cell.case.operation][cell.case] = found
    means = {name: statistics.geometric_mean(of.values()) for name, of in by_operation.items()}
    for operation, mean in sorted(means.items(), key=lambda item: item[1]):
        ratios = by_operation[operation]
        low, high = (end(ratios, key=ratios.__getitem__) for end in (min, max))
        entries = (f"{ratios[low]:.2f}", _short(low), f"{ratios[high]:.1f}", _short(high))
        yield f"`{operation}`", str(len(ratios)), f"{mean:.2f}", *entries


def _short(case: Case) -> str:
    """Without operation and device."""
    return str(case).rpartition(" ")[0].partition(" ")[2]


@reports_errors
def main(page: marked.Page) -> None:
    """Writes PyTorch's time over that of the fastest stable strategy into a page."""
    (run,) = store.load(MEASURED)
    table = marked.table(HEAD, lines(run.cells), 1)
    marked.fill(page, {"cuda": "\n\n".join([table, *provenance([run.machine])])})


if __name__ == "__main__":
    typer.run(main)
