"""`python -m plots.coverage PAGE`: what `benchmarks.coverage` has measured, as tables in a page."""

from pathlib import Path

import typer

from benchmarks.coverage import results
from benchmarks.coverage.results import Coverage
from plots import marked
from strategies.cli.common import reports_errors

KEPT = {
    "coverage": Path("docs/data/coverage.json.gz"),
    "compiled": Path("docs/data/coverage-compiled.json.gz"),
}
"""By the name of its part of the page, what `benchmarks.coverage --out` has kept."""


@reports_errors
def main(page: marked.Page) -> None:
    """Put the tables between the markers of a page."""
    marked.fill(page, {name: part(Coverage.read(path)) for name, path in KEPT.items()})


def part(coverage: Coverage) -> str:
    """The summary, all calls, folded, what "auto" refuses, and where that was measured."""
    every = marked.folded("All calls, the worst first", "\n".join(results.calls(coverage.rows)))
    blocks = ["\n".join(results.summary(coverage.rows)), every]
    blocks += [f"Refused: {failure}" for failure in coverage.failures]
    return "\n\n".join([*blocks, coverage.where])


if __name__ == "__main__":
    typer.run(main)
