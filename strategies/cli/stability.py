"""`backward-strategies stability`: judges every strategy, and "auto", on hard cases."""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies import operations, registry
from strategies.cli.common import (
    Device,
    Dtype,
    Operation,
    Seed,
    console,
    file_option,
    notes,
    reports_errors,
)
from strategies.cli.progress import progress
from strategies.files import UnusableFileError
from strategies.measuring import store
from strategies.measuring.case import DTYPES, Case
from strategies.measuring.machine import describe
from strategies.measuring.measurement import Cell
from strategies.measuring.stability import judged_cells
from strategies.policy.schema import LIMIT
from strategies.selection.draws import hard_cases
from strategies.selection.stability import AUTO
from strategies.selection.text import table

MOST_LEFT_OUT = 100
"""Cases in a row that have nothing exact to compare with."""


@reports_errors
def stability(
    cases: Annotated[int, typer.Option(min=1, help="How many cases to judge.")] = 2000,
    seed: Seed = 0,
    operation: Operation = None,
    dtype: Dtype = None,
    device: Device = "cpu",
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
    if operation is not None:
        operations.get(operation)
    if dtype not in (None, *DTYPES):
        raise ValueError(f"--dtype {dtype}: there is {', '.join(DTYPES)}")
    judged = strategy or [*registry.available(), AUTO]
    for name in {*judged} - {AUTO}:
        registry.get(name)
    names = [operation] if operation else operations.names()
    drawn = hard_cases(device, seed, names, [dtype] if dtype else tuple(DTYPES))
    arguments = {"seed": seed, "operations": list(names), "dtype": dtype, "device": device}
    cells = list(_cells(drawn, cases, judged, arguments, out))
    console.print(_table(cells, seed))
    unstable = [cell for cell in cells if _ratio(cell, AUTO) > LIMIT]
    for cell in unstable:
        console.print(f'"auto" has a ratio of {_ratio(cell, AUTO):.1e} in {cell.case}')
    if unstable:
        raise typer.Exit(1)


def _cells(
    drawn: Iterator[Case],
    count: int,
    judged: Sequence[str],
    arguments: dict[str, object],
    out: Path | None,
) -> Iterator[Cell]:
    """The first cells of a draw: those that a file keeps, then those judged now."""
    writer = None
    if out is not None:
        arguments = {**arguments, "strategies": [*judged]}
        writer = store.Writer(out, "stability", arguments, describe())
    kept = writer.cells[:count] if writer else []
    for cell in kept:
        if out and cell.case not in itertools.islice(drawn, MOST_LEFT_OUT):
            raise UnusableFileError(out, f"is not of this draw: {cell.case} is not in it")
    yield from kept
    missing = count - len(kept)
    with progress(missing, notes) as begin:
        for cell in itertools.islice(judged_cells(drawn, judged), missing):
            begin(str(cell.case))
            if writer:
                writer.append(cell)
            yield cell


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
