"""`python -m benchmarks.peers --out results/peers.json`: PyTorch, ours, JAX and lineax."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import torch
import typer

from benchmarks.peers import report
from benchmarks.peers.comparison import GRIDS, OBJECTIVES, PEERS, Timed, cases, compare, longest
from benchmarks.peers.worker import Peer
from strategies.commands.common import console, notes, tells_errors
from strategies.commands.progress import duration, progress
from strategies.measuring import Case
from strategies.selection import kept_files


@tells_errors
def main(
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON; Markdown goes beside it.")],
    grid: Annotated[str, typer.Option(help=f"One of {', '.join(GRIDS)}.")] = "full",
    budget: Annotated[float, typer.Option(help="Seconds for each library and objective.")] = 2.0,
) -> None:
    """Compare with other libraries, in turn, with as many threads for each.

    Every case is written as it is done. The same command goes on with what is there.
    """
    if grid not in GRIDS:
        raise ValueError(f"--grid {grid}: there is {', '.join(GRIDS)}")
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise ValueError(f"{needed} must be installed: pip install 'backward-strategies[peers]'")
    arguments = {"grid": grid, "budget": budget}
    content = kept_files.PEERS.begun(out, arguments, report.provenance(PEERS))
    results = report.results_of(content)
    every = cases(grid)
    missing_cases = [case for case in every if case not in results]
    at_most = duration(len(missing_cases) * longest(len(PEERS), budget))
    notes.print(
        f"{len(missing_cases)} of {len(every)} cases to measure; takes {at_most} at most",
        highlight=False,
    )
    try:
        for case, timed in _measured(missing_cases, budget):
            results[case] = timed
            report.write(out, content, results)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(results)} of {len(every)} cases are in {out}; the same command goes on from there"
        ) from None
    for objective in OBJECTIVES:
        console.print(report.as_table(results, objective))
    console.print("ratios: time over that of our best strategy, measured in turn, 95 % interval")


def _measured(remaining: list[Case], budget: float) -> Iterator[tuple[Case, list[Timed]]]:
    """Starts the libraries and compares case by case."""
    with contextlib.ExitStack() as stack:
        begin = stack.enter_context(progress(len(remaining), notes))
        threads = torch.get_num_threads()
        peers = [stack.enter_context(Peer(name, threads)) for name in PEERS]
        for case in remaining:
            begin(case.label)
            yield case, compare(case, peers, budget)


if __name__ == "__main__":
    typer.run(main)
