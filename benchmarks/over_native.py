"""`python -m benchmarks.over_native`: "auto" beside torch.linalg, from 2x2 to where calls cost nothing.

Batches are ill-conditioned, too: whether a pivot is roundoff is more to ask then than of random matrices.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated

import torch
import typer

from strategies.cli.common import console, notes, reports_errors
from strategies.cli.progress import progress
from strategies.measuring import TIMED, Case, measure
from strategies.policy import BASELINE
from strategies.selection.stability import AUTO
from strategies.selection.text import table

SINGLE = tuple(f"{n}x{n}" for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128))
OPERATIONS = "inv", "solve", "slogdet", "lu_factor", "pinv", "lstsq"
BATCHES = "1000x4x4", "1000x8x8", "200x16x16"
OF_BATCHES = *OPERATIONS, "lu", "det"
CONDITIONS = "float64", "cond=1e4 float32", "cond=1e11 float64", "cond=1e13.5 float64"
LARGE = (
    "lu_factor 256x256 float64",
    "lu_factor 1024x1024 float32",
    "pinv 4096x32 float64",
    "lstsq 4096x32 float64",
    "lstsq 8192x64 float64",
)


def cases() -> Iterator[str]:
    """Single square matrices in both precisions, batches of any condition, and some large ones."""
    for operation in OPERATIONS:
        for size in SINGLE:
            yield from (f"{operation} {size} {dtype}" for dtype in ("float32", "float64"))
    for operation in OF_BATCHES:
        for size in BATCHES:
            yield from (f"{operation} {size} {condition}" for condition in CONDITIONS)
    yield from LARGE


@reports_errors
def main(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help='As "inv 4x4 float32".')
    ] = None,
    budget: Annotated[float, typer.Option(help="Seconds for the rounds of a case.")] = 0.5,
    beside: Annotated[int, typer.Option(help="Busy processes that run meanwhile.")] = 0,
) -> None:
    """Time "auto" and torch.linalg in the same rounds, and print how often faster "auto" is."""
    measured = [Case.parse(text) for text in texts or cases()]
    columns = ("forward + backward", "95 %", "backward", "95 %")
    shown = table(f'"auto" over PyTorch, {torch.get_num_threads()} threads', ["case"], columns)
    with _busy_processes(beside), progress(len(measured), notes) as begin:
        for case in measured:
            begin(str(case))
            shown.add_row(str(case), *_ratios(case, budget))
    console.print(shown)


@contextlib.contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    """So many processes that compute all the time, and take their share of the cores."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _ratios(case: Case, budget: float) -> Iterator[str]:
    """Of both and of the backward, each with its interval."""
    cell = measure(case, [BASELINE, AUTO], budget=budget)
    for objective in reversed(TIMED):
        ratio, low, high = cell.speedup(BASELINE, AUTO, objective)
        yield from (f"{ratio:.2f}", f"{low:.2f} to {high:.2f}")


if __name__ == "__main__":
    typer.run(main)
