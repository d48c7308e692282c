"""`python -m benchmarks.peers --out results/peers.json`: PyTorch, ours, JAX and lineax."""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.progress import track

from benchmarks.peers import report
from benchmarks.peers.comparison import GRIDS, OBJECTIVES, cases, compare
from benchmarks.peers.worker import Peer
from strategies.commands.common import console, tells_errors

PEERS = ("jax", "lineax")


@tells_errors
def main(
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON; Markdown goes beside it.")],
    grid: Annotated[str, typer.Option(help=f"One of {', '.join(GRIDS)}.")] = "full",
    budget: Annotated[float, typer.Option(help="Seconds for each library and objective.")] = 2.0,
) -> None:
    """Compare with other libraries, in turn, with as many threads for each."""
    if grid not in GRIDS:
        raise ValueError(f"--grid {grid}: there is {', '.join(GRIDS)}")
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise ValueError(f"{needed} must be installed: pip install 'backward-strategies[peers]'")
    with contextlib.ExitStack() as stack:
        threads = torch.get_num_threads()
        peers = [stack.enter_context(Peer(name, threads)) for name in PEERS]
        results = [
            (case, compare(case, peers, budget))
            for case in track(cases(grid), "measuring", console=console)
        ]
    for objective in OBJECTIVES:
        console.print(report.as_table(results, objective))
    console.print("ratios: time over that of our best strategy, measured in turn, 95 % interval")
    report.write(out, results, PEERS)


if __name__ == "__main__":
    typer.run(main)
