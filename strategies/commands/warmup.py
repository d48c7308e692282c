"""`backward-strategies warmup`: compiles the kernels ahead of calls, and shows how far it is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import torch
import typer

import strategies
from strategies.commands.common import console, notes, reports_errors
from strategies.commands.progress import counter
from strategies.grids import GRIDS
from strategies.kernels.cpu.kernel import DTYPES
from strategies.measuring import grid_cases


@reports_errors
def warmup(
    grid: Annotated[
        str | None,
        typer.Option(help=f"Only for the dtypes of its cases: {', '.join(GRIDS)}. Else for all."),
    ] = None,
) -> None:
    """Compile the kernels for the CPU that are not kept yet, so that no call waits for one.

    The same command goes on after an interruption.
    """
    dtypes = DTYPES if grid is None else grid_cases.dtypes(grid)
    if compiled := compile_kernels(dtypes):
        console.print(f"{len(compiled)} kernels compiled")


def compile_kernels(dtypes: Collection[torch.dtype]) -> list[str]:
    """What `strategies.warmup` compiles, with progress."""
    names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in dtypes))
    try:
        with counter(f"compiling kernels for {names}", notes) as show:
            return strategies.warmup(sorted(dtypes, key=str), progress=show)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what is compiled is kept; the same command goes on") from None
