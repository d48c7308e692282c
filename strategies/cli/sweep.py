"""`backward-strategies sweep`: the cells of a grid or workload on many machines."""

import contextlib
import itertools
import multiprocessing
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies.cli.common import console, notes
from strategies.selection.text import table
from strategies.sweeps import collect as collecting
from strategies.sweeps import config, slurm
from strategies.sweeps.cells import SweepCell
from strategies.sweeps.config import Sweep
from strategies.sweeps.folder import Folder, State
from strategies.sweeps.plan import ClassPlan, plans, survey

app = typer.Typer(
    help="Measure a grid or a workload on many machines, by Slurm or here.", no_args_is_help=True
)

SweepFile = Annotated[
    Path, typer.Argument(metavar="SWEEP", help="A TOML file: see docs/clusters.md.")
]


@app.command("plan")
def show_plan(sweep: SweepFile) -> None:
    """Say what is left to measure: cells, jobs and node hours of each class; nothing is begun."""
    console.print(_plan_table(plans(Folder(config.read(sweep)))))


@app.command("local")
def run_here(
    sweep: SweepFile,
    only: Annotated[
        list[str] | None, typer.Option("--class", help="Only this class; may be repeated.")
    ] = None,
) -> None:
    """Measure on this machine, one cell at a time, what is missing.

    The same command resumes an interrupted run. A class that this machine is not of is refused. The exit
    code is 1 if all are.
    """
    folder = Folder(config.read(sweep))
    if unknown := set(only or ()) - folder.sweep.classes.keys():
        raise ValueError(f"no class is named {', '.join(sorted(unknown))}")
    folder.begin()
    try:
        codes = [
            _work_here(folder.sweep, each)
            for each in plans(folder)
            if each.chunks and (not only or each.machines in only)
        ]
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command resumes the sweep") from None
    _tell(folder)
    if codes and all(codes):
        raise typer.Exit(1)


@app.command()
def submit(sweep: SweepFile) -> None:
    """Submit to Slurm what is missing and in no job."""
    folder = Folder(config.read(sweep))
    folder.begin()
    for each in plans(folder, slurm.live(folder)):
        for jobs in slurm.submit(folder, each) if each.chunks else ():
            cells, count = sum(map(len, jobs.tasks)), len(jobs.tasks)
            console.print(f"{each.machines}: {cells} cells in {count} jobs, array {jobs.number}")


@app.command()
def status(sweep: SweepFile) -> None:
    """Say what is measured, running, queued, missing or failed, and why."""
    _tell(Folder(config.read(sweep)))


@app.command()
def collect(sweep: SweepFile) -> None:
    """Write files of results, while the sweep runs or after it.

    They are for `recommend --results` and `policy build --results`.
    """
    found = collecting.collect(Folder(config.read(sweep)))
    for path in found.files:
        console.print(str(path))
    for damage in found.damaged:
        notes.print(f"to be measured again: {damage}", soft_wrap=True)
    for cell, reason in found.failed:
        console.print(f"failed: {cell.machines}: {cell.case}: {reason}", soft_wrap=True)
    failed = len(found.failed)
    console.print(f"{found.measured} cells measured, {failed} failed, {found.remaining} remain")


@app.command()
def cancel(sweep: SweepFile) -> None:
    """Cancel the jobs of a sweep; what is measured stays, and submit goes on."""
    numbers = slurm.cancel(Folder(config.read(sweep)))
    console.print(f"cancelled: {', '.join(numbers)}" if numbers else "no job waits or runs")


def _work_here(sweep: Sweep, plan: ClassPlan) -> int:
    """In a process of its own, as threads and their cores are those of a process; its exit code."""
    cells = [*itertools.chain(*plan.chunks)]
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_work, args=(sweep, plan.machines, cells))
    process.start()
    try:
        process.join()
    finally:
        process.terminate()  # if it is at work still: it ends the cell
        process.join()
    return process.exitcode or 0


def _work(sweep: Sweep, machines: str, cells: list[SweepCell]) -> None:
    from strategies.sweeps.worker import work  # workers need Unix; a command line does not

    try:
        work(Folder(sweep), machines, cells)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from error


def _tell(folder: Folder) -> None:
    """A line a class, then what needs attention."""
    queued: dict[str, dict[str, str]] = {}
    with contextlib.suppress(slurm.SlurmError):  # it is a hint, and there may be no Slurm here
        queued = slurm.live(folder)
    states = State.MEASURED, State.FAILED, State.RUNNING, "queued", State.MISSING
    lines = table("Cells", ["class"], states)
    attention = []
    for machines, cells in survey(folder).items():
        counts: Counter[str] = Counter()
        for cell, known in cells:
            waits = known.state is State.MISSING and cell.key in queued.get(machines, {})
            counts["queued" if waits else known.state] += 1
            if known.state is State.FAILED:
                attention.append(f"failed: {machines}: {cell.case}: {known.past.reason}")
            if known.damage:
                attention.append(f"to be measured again: {known.damage}")
        refusals = folder.refusals(machines)
        attention += [f"refused: {of.node} is not of {machines}: {of.problem}" for of in refusals]
        lines.add_row(machines, *(str(counts[each]) for each in states))
    console.print(lines)
    for line in attention:
        console.print(line, soft_wrap=True)


def _plan_table(found: list[ClassPlan]) -> Table:
    columns = "cells", "of known seconds", "jobs", "longest", "node hours"
    lines = table("To be measured", ["class"], columns)

    def row(name: str, of: list[ClassPlan], longest: str) -> None:
        cells = sum(len(chunk) for each in of for chunk in each.chunks)
        jobs = sum(len(each.chunks) for each in of)
        hours = sum(sum(each.seconds) for each in of) / 3600
        measured = sum(each.measured for each in of)
        lines.add_row(name, str(cells), str(measured), str(jobs), longest, f"{hours:.1f}")

    for each in found:
        row(each.machines, [each], f"{max(each.seconds, default=0) / 60:.0f} min")
    row("all", found, "")
    return lines
