"""`backward-strategies policy`: the defaults as a file, and what is in force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies import files
from strategies.cli import own_policy
from strategies.cli.common import (
    DEFAULT_RESULTS,
    Accuracy,
    Goal,
    Memory,
    Results,
    console,
    reports_errors,
)
from strategies.files import json_text, write_text
from strategies.measuring import store
from strategies.measuring.case import Case
from strategies.measuring.measurement import Objective
from strategies.policy import BASELINE, calibration, schema
from strategies.policy.schema import Cell, Policy
from strategies.selection import policies
from strategies.selection.eligibility import Criteria
from strategies.selection.text import table

app = typer.Typer(
    help="Build, show and compare policies; move what was calibrated.", no_args_is_help=True
)

app.command()(own_policy.clear)
app.command()(own_policy.export)
app.command("import")(own_policy.import_)

PolicyFile = Annotated[Path, typer.Argument(metavar="FILE")]

CASE = "operation", "case", "dtype", "device"


@app.command()
@reports_errors
def build(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the policy.")],
    results: Results = DEFAULT_RESULTS,
    accuracy: Accuracy = None,
    memory: Memory = None,
    objective: Goal = Objective.FORWARD_BACKWARD,
    base: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The machine that it is of; others answer near them."),
    ] = None,
) -> None:
    """Build a policy from the results of one machine, or of several of which one is named.

    Where that policy is followed, the machine that is nearest answers.
    """
    criteria = Criteria(objective, accuracy, memory)
    policy = policies.build(store.load(results), criteria, base)
    write_text(out, json_text(policy))
    beside = [f"{part.machine['name']} ({part.device})" for part in policy.others]
    others = f"; beside it {', '.join(beside)}" if beside else ""
    console.print(f"{len(policies.by_case(policy))} cells written to {out}{others}", soft_wrap=True)


@app.command()
@reports_errors
def show(file: Annotated[Path | None, typer.Argument(metavar="[FILE]")] = None) -> None:
    """Show what "auto" follows, and why; or what a file says, and the single default of operations."""
    if file is None:
        own_policy.tell_in_force()
        return
    if files.says(file, calibration.FORMAT):
        own_policy.tell_parts(file, calibration.read(file))
        return
    policy = schema.read(file)
    console.print(defaults_table(policy))
    choices = "use", "as good", "else"
    lines = table("By case", (*CASE, *choices), ["× native"], wraps=(*CASE, *choices))
    for case, cell in policies.by_case(policy).items():
        native = cell.times.get(BASELINE)
        over = "-" if native is None else f"{native / cell.times.get(cell.use, 1.0):.3g}"
        lines.add_row(*_words(case), cell.use, ", ".join(cell.ties), _next(cell), over)
    console.print(lines)
    if policy.others:
        own_policy.tell_others(policy)


@app.command()
@reports_errors
def diff(old: PolicyFile, new: PolicyFile) -> None:
    """Compare two policies, cell by cell; exit code 1 if they differ beyond ties."""
    one, other = schema.read(old), schema.read(new)
    shared = policies.differences(one, other)
    changed = [each for each in shared if each.is_change]
    decided = [each for each in shared if not each.is_tie]
    beyond = sum(each.is_change for each in decided)
    alone = len(policies.by_case(one)) + len(policies.by_case(other)) - 2 * len(shared)
    if changed:
        lines = table("Changed", (*CASE, "old", "new", ""), wraps=(*CASE, "old", "new"))
        for each in changed:
            note = "a tie" if each.is_tie else ""
            lines.add_row(*_words(each.case), each.old.use, each.new.use, note)
        console.print(lines)
    console.print(
        f"{len(shared)} cells in both: {len(shared) - len(changed)} agree, "
        f"{len(changed) - beyond} differ within a tie, {beyond} differ; {alone} in one only"
    )
    if decided:
        agreeing = len(decided) - beyond
        share = f"{agreeing / len(decided):.1%}"
        console.print(f"of the {len(decided)} that are no tie, {agreeing} agree: {share}")
    if beyond:
        raise typer.Exit(1)


def defaults_table(policy: Policy) -> Table:
    """The strategy of every operation to keep if only one may be kept."""
    lines = table(
        "If only one may be kept",
        ("operation", "matrices", "use"),
        ("worst regret", "mean regret", "not covered"),
    )
    for operation, entry in policy.operations.items():
        for matrices, default in (("full rank", entry.full_rank), ("any rank", entry.any_rank)):
            if default is not None:
                regrets = f"{default.worst_regret:.2f}×", f"{default.mean_regret:.2f}×"
                uncovered = f"{default.uncovered} of {default.cells}"
                lines.add_row(operation, matrices, default.strategy, *regrets, uncovered)
    return lines


def _words(case: Case) -> tuple[str, ...]:
    return case.operation, case.sizes, case.dtype_name, case.device


def _next(cell: Cell) -> str:
    """The fastest that is slower, and by how much: what is lost where the others are missing."""
    slower = cell.times.keys() - {cell.use, *cell.ties}
    if not slower:
        return "-"
    name = min(slower, key=cell.times.__getitem__)
    return f"{name} {cell.times[name] / cell.times.get(cell.use, 1.0):.3g}×"
