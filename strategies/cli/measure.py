"""`backward-strategies measure`: measures the cells of a grid, or the calls of a program."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

import strategies
from strategies import operations, registry
from strategies.cli.common import console, file_option, notes
from strategies.cli.progress import progress
from strategies.integration.workload import Workload
from strategies.measuring import TIMED, Case, Objective, Writer, describe, grid_cases, measure
from strategies.measuring.noise import BUSY, VERY_NOISY, with_load_and_noise
from strategies.operations.grids import GRIDS
from strategies.selection.text import quietness


class Timed(StrEnum):
    """What a clock is held against."""

    BOTH = "both"
    BACKWARD = Objective.BACKWARD
    FORWARD_BACKWARD = Objective.FORWARD_BACKWARD


def measure_grid(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the cells, as JSON.")],
    grid: Annotated[
        str, typer.Option(envvar="BACKWARD_STRATEGIES_GRID", help=f"One of {', '.join(GRIDS)}.")
    ] = "quick",
    objective: Annotated[Timed, typer.Option(help="What is timed.")] = Timed.BOTH,
    operation: Annotated[
        str | None, typer.Option(help="Only its cells; in a file of their own, the newest count.")
    ] = None,
    budget: Annotated[
        float,
        typer.Option(min=0.0, max=3600.0, help="Seconds for the rounds of a cell and objective."),
    ] = 1.0,
    workload: Annotated[
        Path | None, file_option("Its calls instead of a grid: see record.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call this machine, not by its host.")
    ] = None,
) -> None:
    """Measure the cells of a grid, or of a program, all strategies of a cell in the same rounds.

    Every cell is written as soon as it is measured. The same command resumes an interrupted run.
    """
    if operation not in (None, *operations.measured()):
        raise ValueError(f"--operation {operation}: there is {', '.join(operations.measured())}")
    if workload is None:
        source, timed, judged = grid, grid_cases.timed(grid), grid_cases.judged(grid)
    else:
        source, timed, judged = str(workload), list(Workload.read(workload).cases()), []
    if operation:
        timed = [case for case in timed if case.operation == operation]
        judged = [case for case in judged if case.operation == operation]
    arguments = {"grid": source, "objective": str(objective), "budget": budget}
    arguments |= {"operation": operation} if operation else {}
    arguments["strategies"] = list(strategies.available())
    clocked = TIMED if objective is Timed.BOTH else (Objective(objective),)
    here = with_load_and_noise(describe())
    here = msgspec.structs.replace(here, name=machine or here.name)
    writer = Writer(out, "grid", arguments, here)
    if (here.noise or 0.0) >= VERY_NOISY:
        notes.print(f"{quietness([here])}. What other work disturbs will be marked.")
    to_time = set(timed)
    with resumable(writer, [*timed, *judged]) as missing:
        for case in missing:
            names = registry.distinct(operations.get(case.operation).stem)
            objectives = clocked if case in to_time else ()
            writer.append(measure(case, names, objectives=objectives, budget=budget))
    cells = writer.cells
    contended = sum((cell.contention or 1.0) >= BUSY for cell in cells)
    console.print(f"{len(cells)} cells in {out}, {contended} of them measured beside other work")
    console.print(f"before: {quietness([here])}; after: {quietness([with_load_and_noise(here)])}")


@contextlib.contextmanager
def resumable(writer: Writer, cases: Sequence[Case]) -> Iterator[Iterable[Case]]:
    """The cases that a writer lacks, with progress as each begins; Ctrl-C says how to resume."""
    kept = {cell.case for cell in writer.cells}
    missing = [case for case in cases if case not in kept]
    try:
        with progress(len(missing), notes) as begin:
            yield (begin(str(case)) or case for case in missing)
    except KeyboardInterrupt:
        known = {cell.case for cell in writer.cells}
        done = sum(case in known for case in cases)
        raise how_to_resume(writer, done, len(cases)) from None


def how_to_resume(writer: Writer, done: int, count: int) -> KeyboardInterrupt:
    """Ctrl-C that says what is kept, if anything is."""
    if writer.path is None:
        return KeyboardInterrupt()
    kept = f"{done} of {count} cells are in {writer.path}"
    return KeyboardInterrupt(f"{kept}; the same command resumes the run")
