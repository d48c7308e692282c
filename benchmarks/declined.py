"""`python -m benchmarks.declined`: what a call costs more that installed operators leave to PyTorch."""

import contextlib
import time
import timeit
from collections.abc import Callable, Mapping
from typing import Annotated

import torch
import typer

import strategies
from strategies.cli.common import console, reports_errors
from strategies.selection import text

_CALLS = 100
"""In a block: long enough for the clock, and short enough for some to be left alone by other work."""

Call = Callable[[], object]


@reports_errors
def main(
    rounds: Annotated[int, typer.Option(min=1, help="With and without, in turns.")] = 1000,
) -> None:
    """Time calls in one thread with operators installed and without; the least processor times."""
    torch.set_num_threads(1)
    columns = ("PyTorch", "more, if installed")
    table = text.table("microseconds of a call", ["why PyTorch computes"], columns)
    for reason, call in calls().items():
        with strategies.use("native") if "kernels" in reason else contextlib.nullcontext():
            without, installed = _least(call, rounds)
        table.add_row(reason, f"{without:.2f}", f"{installed - without:.2f}")
    console.print(table)


def calls() -> Mapping[str, Call]:
    """By what they are left to PyTorch for."""
    A = torch.eye(4, dtype=torch.float64)
    conjugate, empty, wide = A.to(torch.complex64).conj(), A.new_empty(0, 0), A.new_ones(3, 4, 1)
    return {
        "a tensor: a pending conjugate": lambda: torch.linalg.inv(conjugate),
        "an option: an upper factor": lambda: torch.linalg.cholesky(A, upper=True),
        "a shape: an empty matrix": lambda: torch.linalg.inv(empty),
        "a shape: a batch that is broadcast": lambda: torch.linalg.solve(A, wide),
        '"auto" without compiled kernels': lambda: torch.linalg.det(A),
    }


def _least(call: Call, rounds: int) -> tuple[float, float]:
    """Without and with installed operators."""
    # A first call finds what was registered.
    timer = timeit.Timer(call, setup=call, timer=time.thread_time)
    without, installed = [], []
    for _ in range(rounds):
        without.append(timer.timeit(_CALLS))
        with strategies.install():
            installed.append(timer.timeit(_CALLS))
    return min(without) / _CALLS * 1e6, min(installed) / _CALLS * 1e6


if __name__ == "__main__":
    typer.run(main)
