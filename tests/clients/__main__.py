"""`python -m tests.clients out/clients`: runs tests of libraries with this package in place of torch."""

import itertools
from pathlib import Path
from typing import Annotated

import torch
import typer

from plots import marked
from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import progress
from strategies.measuring.machine import describe
from strategies.selection import text
from tests.clients import page, suite
from tests.clients.library import LIBRARIES, named
from tests.clients.report import Report
from tests.clients.suite import AFTER, TORCH, WAYS


@reports_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="For sources, reports and logs.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[LIBRARY]...", help="By default all.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--page", metavar="PAGE", help="A page to put tables into.")
    ] = None,
) -> None:
    """Run the libraries' tests with torch alone, replaced and installed; exit status 1 if these alone fail.

    The same command resumes an interrupted run: a report that is there is not written again.
    """
    libraries = [named(name) for name in names] if names else LIBRARIES
    reports = out / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    every = itertools.product(libraries, WAYS)
    runs = {run: reports / f"{run[0].name}-{run[1]}.json" for run in every}
    missing = {run: path for run, path in runs.items() if not path.exists()}
    try:
        with progress(len(missing), notes) as begin:
            for (library, way), path in missing.items():
                begin(f"{library.name}, {way}")
                suite.run(library, way, library.sources(out), path)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command resumes the run, from {out}") from None
    found = {
        library: {way: Report.read(runs[library, way]) for way in WAYS} for library in libraries
    }
    table, differing = page.table(found), page.differing(found)
    console.print(table, differing, sep="\n\n")
    if into is not None:
        parts = {
            "measured": f"Run on: {'; '.join(text.provenance([describe()]))}.",
            "table": table,
            "differing": differing,
            "refusals": page.refusals(ways[AFTER] for ways in found.values()),
        }
        marked.fill(into, parts)
    if any(each.broken(ways[TORCH]) for ways in found.values() for each in ways.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    torch.set_num_threads(1)  # as the tests run, for what the page says
    typer.run(main)
