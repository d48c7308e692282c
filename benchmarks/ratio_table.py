"""How many times faster "auto" is than PyTorch, as a table that is printed when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from rich.table import Table

from strategies.cli.common import console, notes
from strategies.cli.progress import progress

__all__ = ["OBJECTIVES", "print_ratios"]

OBJECTIVES = "forward + backward", "backward"

Row = TypeVar("Row")


def print_ratios(
    rows: Sequence[Row], ratios: Callable[[Row], Iterable[tuple[float, float, float]]]
) -> None:
    """Measure the ratios of every row, one for each of `OBJECTIVES`, each with its 95 % interval."""
    table = Table(title=f'"auto" over PyTorch, {torch.get_num_threads()} threads')
    table.add_column("case")
    for objective in OBJECTIVES:
        table.add_column(objective, justify="right")
        table.add_column("95 %", justify="right", no_wrap=True)
    with progress(len(rows), notes) as begin:
        for row in rows:
            begin(str(row))
            found = [
                (f"{ratio:.2f}", f"{low:.2f} to {high:.2f}") for ratio, low, high in ratios(row)
            ]
            table.add_row(str(row), *(text for pair in found for text in pair))
    console.print(table)
