"""`backward-strategies stability`: judges every strategy, and "auto", on hard cases."""

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies import operations, registry
from strategies.cli import common
from strategies.cli.common import console, file_option, notes
from strategies.cli.measure import how_to_resume
from strategies.cli.progress import progress
from strategies.errors import UnusableFileError
from strategies.measuring import DTYPES, Case, Cell, describe, store
from strategies.measuring.stability import judged_cells
from strategies.policy.schema import LIMIT
from strategies.selection.draws import hard_cases
from strategies.selection.stability import AUTO
from strategies.selection.text import table

MOST_LEFT_OUT = 100
"""Cases in a row that have nothing exact to compare with."""


def stability(
    cases: Annotated[int, typer.Option(min=1, help="How many cases to judge.")] = 2000,
    seed: common.Seed = 0,
    operation: common.Operation = None,
    dtype: common.Dtype = None,
    device: common.Device = "cpu",
    strategy: Annotated[
        list[str] | None, typer.Option(help='Only this, or "auto"; may be repeated.')
    ] = None,
    out: Annotated[
        Path | None, file_option("Keep the cells there, and judge only those it lacks.")
    ] = None,
) -> None:
    """Compare results and gradients with exact ones, in cases drawn to be hard.

    A stability ratio is an error over what rounding the inputs explains. The exit code is 1 if "auto"
    has one above the limit.
    """
    if dtype not in (None, *DTYPES):
        raise ValueError(f"--dtype {dtype}: there is {', '.join(DTYPES)}")
    judged = strategy or [*registry.available(), AUTO]
    for name in {*judged} - {AUTO}:
        registry.get(name)
    names = [operations.get(operation).name] if operation else operations.names()
    drawn = hard_cases(device, seed, names, [dtype] if dtype else tuple(DTYPES))
    arguments = {"seed": seed, "operations": list(names), "dtype": dtype, "device": device}
    arguments |= {"strategies": [*judged]}
    writer = store.Writer(out, "stability", arguments, describe())
    cells = judged_first(drawn, cases, partial(judged_cells, names=judged), writer)
    console.print(_table(cells, seed))
    unstable = [cell for cell in cells if _ratio(cell, AUTO) > LIMIT]
    for cell in unstable:
        console.print(f'"auto" has a ratio of {_ratio(cell, AUTO):.1e} in {cell.case}')
    if unstable:
        raise typer.Exit(1)


def judged_first(
    drawn: Iterator[Case],
    count: int,
    judged: Callable[[Iterator[Case]], Iterator[Cell]],
    writer: store.Writer,
) -> list[Cell]:
    """The first cells of a draw: those that a writer has, then those judged now."""
    for cell in writer.cells[:count]:
        if writer.path and cell.case not in itertools.islice(drawn, MOST_LEFT_OUT):
            raise UnusableFileError(writer.path, f"is not of this draw: {cell.case} is not in it")
    missing = max(count - len(writer.cells), 0)
    try:
        with progress(missing, notes) as begin:
            for cell in itertools.islice(judged(drawn), missing):
                begin(str(cell.case))
                writer.append(cell)
    except KeyboardInterrupt:
        raise how_to_resume(writer, len(writer.cells), count) from None
    return writer.cells[:count]


def _table(cells: Sequence[Cell], seed: int) -> Table:
    lines = table(
        f"Stability ratios over {len(cells)} hard cases, seed {seed}, limit {LIMIT:.0f}",
        ("operation", "strategy"),
        ("judged", "refused", "median", "worst", "above"),
        wraps=["in"],
    )
    lines.add_column("in")
    for operation in dict.fromkeys(cell.case.operation for cell in cells):
        own = [cell for cell in cells if cell.case.operation == operation]
        for name in [each.strategy for each in own[0]]:
            ratios = {str(cell.case): _ratio(cell, name) for cell in own}
            judged = {case: ratio for case, ratio in ratios.items() if ratio >= 0}
            figures = [str(len(judged)), str(len(ratios) - len(judged))]
            if not judged:
                lines.add_row(operation, name, *figures)
                continue
            worst = max(judged, key=judged.__getitem__)
            above = sum(ratio > LIMIT for ratio in judged.values())
            median = statistics.median(judged.values())
            figures += [f"{median:.1g}", f"{judged[worst]:.1e}", str(above)]
            lines.add_row(operation, name, *figures, worst)
    return lines


def _ratio(cell: Cell, name: str) -> float:
    """The worst ratio of a strategy in a case; −1 where it refused."""
    found = cell.get(name)
    return found.stability.worst if found and found.stability else -1.0
