"""How many times faster "auto" is than PyTorch, as a table that is printed when it is complete."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch

from strategies.cli.common import console, notes
from strategies.cli.progress import progress
from strategies.selection.text import table

Row = TypeVar("Row")


def print_ratios(
    rows: Sequence[Row], ratios: Callable[[Row], Iterable[tuple[float, float, float]]]
) -> None:
    """Measures the ratios of every row, of both and of the backward, each with its 95 % interval."""
    columns = ("forward + backward", "95 %", "backward", "95 %")
    shown = table(f'"auto" over PyTorch, {torch.get_num_threads()} threads', ["case"], columns)
    with progress(len(rows), notes) as begin:
        for row in rows:
            begin(str(row))
            cells = [
                words
                for ratio, low, high in ratios(row)
                for words in (f"{ratio:.2f}", f"{low:.2f} to {high:.2f}")
            ]
            shown.add_row(str(row), *cells)
    console.print(shown)
