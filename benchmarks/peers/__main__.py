"""`python -m benchmarks.peers out/results/peers.json`: PyTorch, ours, JAX and lineax."""

import contextlib
import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.table import Table

from benchmarks.peers.comparison import PEERS, compare, fastest, small_cases
from benchmarks.peers.process import Peer
from strategies.cli.common import console, reports_errors
from strategies.cli.measure import resumable
from strategies.measuring import Case, Cell, Objective, Writer, describe, grid_cases
from strategies.measuring.noise import with_load_and_noise
from strategies.operations.grids import GRIDS
from strategies.policy import BASELINE
from strategies.selection import text


@reports_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the cells, as JSON.")],
    cases: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE]...", help='As "lu_factor 512x512", in place of a grid\'s.'),
    ] = None,
    grid: Annotated[str, typer.Option(help=f"One of {', '.join(GRIDS)}.")] = "quick",
    budget: Annotated[float, typer.Option(help="Seconds for the rounds of an objective.")] = 2.0,
) -> None:
    """Compare with other libraries at full rank on the CPU, with as many threads for each.

    Single matrices from 4x4 to 64x64 come first, then the cases that are given, or those of the grid.

    Every case is written as soon as it is measured. The same command resumes an interrupted run.
    """
    needed = " and ".join(name for name in PEERS if importlib.util.find_spec(name) is None)
    if needed:
        raise ValueError(f"{needed} must be installed: pip install -e '.[peers]'")
    if cases:
        others = [Case.parse(text) for text in cases]
    else:
        others = [each for each in grid_cases.timed(grid) if each.device == "cpu" and not each.rank]
    arguments = {"cases": cases} if cases else {"grid": grid}
    machine = with_load_and_noise(describe(PEERS))
    writer = Writer(out, "peers", {**arguments, "budget": budget}, machine)
    with contextlib.ExitStack() as stack:
        wanted = [*dict.fromkeys([*small_cases(), *others])]
        missing = stack.enter_context(resumable(writer, wanted))
        peers = [stack.enter_context(Peer(name, torch.get_num_threads())) for name in PEERS]
        for case in missing:
            writer.append(compare(case, peers, budget))
    for objective in (Objective.FORWARD_BACKWARD, Objective.BACKWARD):
        console.print(as_table(writer.cells, objective))


def as_table(cells: Sequence[Cell], objective: Objective) -> Table:
    """Native's time, and how many times as fast everything else is, with 95 % intervals."""
    compared = ("ours", *PEERS)
    table = text.table(text.OBJECTIVES[objective], ["case", BASELINE, *compared], wraps=compared)
    for cell in cells:
        cost = cell.costs(objective).get(BASELINE)
        best = fastest(cell, objective) or ""
        shown = [_speedup(cell, name, objective) for name in (best, *PEERS)]
        took = text.seconds(cost.seconds if cost else None)
        table.add_row(str(cell.case).removesuffix(" cpu"), took, f"{best} {shown[0]}", *shown[1:])
    return table


def _speedup(cell: Cell, name: str, objective: Objective) -> str:
    speedup, low, high = cell.speedup(BASELINE, name, objective)
    if math.isnan(speedup):
        return text.NOTHING
    return f"{text.times(speedup)} [{text.times(low)}, {text.times(high)}]"


if __name__ == "__main__":
    typer.run(main)
