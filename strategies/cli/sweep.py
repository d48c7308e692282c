"""`backward-strategies sweep`: the cells of a grid or workload on many machines."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies.cli.common import console, notes, reports_errors
from strategies.selection.text import table
from strategies.sweeps import collect as collecting
from strategies.sweeps import config, local, slurm
from strategies.sweeps.folder import Folder, State
from strategies.sweeps.plan import ClassPlan, estimates_of, plan, survey

app = typer.Typer(
    help="Measure a grid or a workload on many machines, by Slurm or here.", no_args_is_help=True
)

SweepFile = Annotated[
    Path, typer.Argument(metavar="SWEEP", help="A TOML file: see docs/clusters.md.")
]


@app.command("plan")
@reports_errors
def show_plan(sweep: SweepFile) -> None:
    """Say what is left to measure: cells, jobs and node hours of each class; nothing is begun."""
    folder = Folder(config.read(sweep))
    plans = _plans(folder, {})
    console.print(_plan_table(plans))


@app.command("local")
@reports_errors
def run_here(
    sweep: SweepFile,
    only: Annotated[
        list[str] | None, typer.Option("--class", help="Only this class; may be repeated.")
    ] = None,
) -> None:
    """Measure on this machine, one cell at a time, what is missing.

    The same command resumes an interrupted run. A class that this machine is not of is refused.
    """
    folder = Folder(config.read(sweep))
    if unknown := set(only or ()) - folder.sweep.classes.keys():
        raise ValueError(f"no class is named {', '.join(sorted(unknown))}")
    folder.begin()
    try:
        for each in _plans(folder, {}):
            if each.chunks and (not only or each.machines in only):
                tasks = [task for chunk in each.chunks for task in chunk]
                local.run(folder.sweep, each.machines, tasks)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the same command resumes the sweep") from None
    _tell(folder)


@app.command()
@reports_errors
def submit(sweep: SweepFile) -> None:
    """Submit to Slurm what is missing and in no job."""
    folder = Folder(config.read(sweep))
    folder.begin()
    for each in _plans(folder, slurm.live(folder)):
        for jobs in slurm.submit(folder, each) if each.chunks else ():
            cells = sum(map(len, jobs.tasks))
            console.print(
                f"{each.machines}: {cells} cells in {len(jobs.tasks)} jobs, array {jobs.number}"
            )


@app.command()
@reports_errors
def status(sweep: SweepFile) -> None:
    """Say what is measured, running, queued, missing or failed, and why."""
    _tell(Folder(config.read(sweep)))


@app.command()
@reports_errors
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
    console.print(
        f"{found.measured} cells measured, {len(found.failed)} failed, {found.remaining} remain"
    )


@app.command()
@reports_errors
def cancel(sweep: SweepFile) -> None:
    """Cancel the jobs of a sweep; what is measured stays, and submit goes on."""
    numbers = slurm.cancel(Folder(config.read(sweep)))
    console.print(f"cancelled: {', '.join(numbers)}" if numbers else "no job waits or runs")


def _plans(folder: Folder, queued: dict[str, dict[str, str]]) -> list[ClassPlan]:
    surveyed = survey(folder)
    estimates = estimates_of(folder, surveyed)
    return [
        plan(folder, machines, cells, estimates, queued.get(machines, {}))
        for machines, cells in surveyed.items()
    ]


def _tell(folder: Folder) -> None:
    """A line a class, then what needs attention."""
    queued: dict[str, dict[str, str]] = {}
    with contextlib.suppress(slurm.SlurmError):  # it is a hint, and there may be no Slurm here
        queued = slurm.live(folder)
    lines = table("Cells", ["class"], ("measured", "failed", "running", "queued", "missing"))
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
        attention += [
            f"refused: {refusal.node} is not of {machines}: {refusal.problem}"
            for refusal in folder.refusals(machines)
        ]
        lines.add_row(machines, *(str(counts[each]) for each in _COLUMNS))
    console.print(lines)
    for line in attention:
        console.print(line, soft_wrap=True)


_COLUMNS = (State.MEASURED, State.FAILED, State.RUNNING, "queued", State.MISSING)


def _plan_table(plans: list[ClassPlan]) -> Table:
    """What each class has left, and all of them."""
    lines = table(
        "To be measured",
        ["class"],
        ("cells", "of known seconds", "jobs", "longest", "node hours"),
    )
    for each in plans:
        cells = sum(map(len, each.chunks))
        longest = f"{max(each.seconds, default=0) / 60:.0f} min"
        hours = f"{sum(each.seconds) / 3600:.1f}"
        lines.add_row(
            each.machines, str(cells), str(each.measured), str(len(each.chunks)), longest, hours
        )
    seconds = sum(sum(each.seconds) for each in plans)
    cells = sum(len(chunk) for each in plans for chunk in each.chunks)
    chunks = sum(len(each.chunks) for each in plans)
    measured = sum(each.measured for each in plans)
    lines.add_row("all", str(cells), str(measured), str(chunks), "", f"{seconds / 3600:.1f}")
    return lines
