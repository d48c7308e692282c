"""`backward-strategies policy build | show | diff`: the defaults as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table

import strategies
from strategies.commands.common import DEFAULT_RESULTS, Results, console, tells_errors
from strategies.selection import policy_building, recommendation, rows, verdicts

app = typer.Typer(help="Build, show and compare policies.", no_args_is_help=True)

PolicyFile = Annotated[Path, typer.Argument(metavar="FILE")]


@app.command()
@tells_errors
def build(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the policy.")],
    results: Results = DEFAULT_RESULTS,
    accuracy: Annotated[
        float | None,
        typer.Option(help="Largest relative error accepted. [default: ten times the best]"),
    ] = None,
    memory: Annotated[float | None, typer.Option(help="Most bytes the backward may take.")] = None,
    objective: Annotated[
        verdicts.Objective, typer.Option(help="What is to be small.")
    ] = verdicts.Objective.BACKWARD,
) -> None:
    """Build a policy from the results of one machine."""
    criteria = verdicts.Criteria(objective, accuracy, memory)
    policy = policy_building.build(rows.load(results), strategies.available(), criteria)
    policy_building.write(policy, out)
    console.print(f"{len(policy_building.flat(policy))} cells written to {out}")


@app.command()
@tells_errors
def show(file: PolicyFile) -> None:
    """Show what a policy says, and the single default of every operation."""
    policy = policy_building.read(file)
    console.print(_defaults(policy))
    table = Table(title="By case", title_justify="left", header_style="bold")
    for name in ("operation", "case", "dtype", "device", "use", "as good", "else", "× native"):
        table.add_column(name)
    for _, cell in policy_building.flat(policy).iterrows():
        table.add_row(
            *_case(cell),
            cell["use"],
            ", ".join(cell["ties"]),
            _next(cell),
            "-" if pd.isna(cell["over_native"]) else f"{cell['over_native']:.3g}",
        )
    console.print(table)


@app.command()
@tells_errors
def diff(old: PolicyFile, new: PolicyFile) -> None:
    """Compare two policies, cell by cell; exit code 1 if they differ beyond ties."""
    cells = policy_building.differences(policy_building.read(old), policy_building.read(new))
    shared = cells[cells["use_old"].notna() & cells["use_new"].notna()]
    changed = shared[shared["use_old"] != shared["use_new"]]
    table = Table(title="Changed", title_justify="left", header_style="bold")
    for name in ("operation", "case", "dtype", "device", "old", "new", ""):
        table.add_column(name)
    for _, cell in changed.iterrows():
        note = "a tie" if cell["is_tie"] else ""
        table.add_row(*_case(cell), cell["use_old"], cell["use_new"], note)
    if len(changed):
        console.print(table)
    beyond = int((~changed["is_tie"]).sum())
    only = len(cells) - len(shared)
    console.print(
        f"{len(shared)} cells in both: {len(shared) - len(changed)} agree, "
        f"{len(changed) - beyond} differ within a tie, {beyond} differ; {only} in one only"
    )
    agreeing, decided = policy_building.agreement(cells)
    if decided:
        console.print(
            f"of the {decided} that are no tie, {agreeing} agree: {agreeing / decided:.1%}"
        )
    if beyond:
        raise typer.Exit(1)


def _case(cell: pd.Series) -> tuple[str, str, str, str]:
    return cell["operation"], recommendation.case_text(cell), cell["dtype"], cell["device"]


def _next(cell: pd.Series) -> str:
    """The fastest that is slower, and by how much: what is lost where the others are missing."""
    slower = {
        name: time
        for name, time in cell["times"].items()
        if name != cell["use"] and name not in cell["ties"]
    }
    if not slower:
        return "-"
    name = min(slower, key=slower.__getitem__)
    return f"{name} {slower[name] / cell['times'].get(cell['use'], 1.0):.3g}×"


def _defaults(policy: dict[str, Any]) -> Table:
    table = Table(title="If only one may be kept", title_justify="left", header_style="bold")
    for name in ("operation", "matrices", "use", "worst regret", "mean regret", "not covered"):
        table.add_column(name)
    for operation, entry in policy["operations"].items():
        for regime, default in sorted(entry["default"].items(), reverse=True):
            regrets = (default["worst_regret"], default["geometric_mean_regret"])
            table.add_row(
                operation,
                regime.replace("_", " "),
                default["strategy"],
                *("-" if regret is None else f"{regret:.2f}×" for regret in regrets),
                f"{default['uncovered']} of {default['cells']}",
            )
    return table
