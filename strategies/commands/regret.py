"""`backward-strategies regret`: how good a policy is on cases it has not seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.progress import Progress
from rich.table import Table

import strategies
from strategies.commands.common import console, tells_errors
from strategies.selection import files, policy_building
from strategies.selection import regret as regrets

FORMAT = "backward-strategies regret"
VERSION = 1


@tells_errors
def regret(
    policy_file: Annotated[Path, typer.Argument(metavar="POLICY")],
    cases: Annotated[int, typer.Option(min=1, help="How many cases to draw.")] = 150,
    seed: Annotated[int, typer.Option(help="Determines the cases.")] = 0,
    device: Annotated[str, typer.Option(help="As cpu or cuda:0.")] = "cpu",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JSON there too.")] = None,
) -> None:
    """Run every strategy on cases drawn at random, and score the policy's choices."""
    policy = policy_building.read(policy_file)
    known = policy_building.flat(policy)
    if known.empty:
        raise ValueError(f"{policy_file}: holds no cells to be judged")
    drawn = regrets.draw_cases(
        cases, sorted(known["operation"].unique()), sorted(known["dtype"].unique()), device, seed
    )
    with Progress(console=console) as progress:
        task = progress.add_task("measuring", total=len(drawn))
        scores = regrets.score(
            drawn, policy, strategies.available(), measured=lambda _: progress.advance(task)
        )
    summary, wrong = regrets.summary(scores), regrets.wrong_choices(scores)
    console.print(_summary_table(summary, seed))
    if len(wrong):
        console.print(_wrong_table(wrong))
    if out is not None:
        content = {"format": FORMAT, "version": VERSION, "seed": seed, "cases": cases}
        files.write_json(
            out,
            content
            | {"policy": str(policy_file.name), "provenance": policy["provenance"]}
            | {"scores": scores.to_dict("records")},
        )


def _summary_table(summary: pd.DataFrame, seed: int) -> Table:
    count = int(summary["cases"].max())
    table = Table(title=f"Regret over {count} held-out cases, seed {seed}", title_justify="left")
    for name in ("choice", "median", "p95", "worst", "eligible in"):
        table.add_column(name, justify="left" if name == "choice" else "right")
    for choice, row in summary.iterrows():
        figures = (_regret(row[name]) for name in ("median", "p95", "worst"))
        table.add_row(str(choice), *figures, f"{row['eligible']:.0%}")
    return table


def _wrong_table(wrong: pd.DataFrame) -> Table:
    table = Table(title="Where the policy chose wrongly", title_justify="left")
    for name in ("case", "chose", "regret", "severity"):
        table.add_column(name)
    for _, row in wrong.iterrows():
        table.add_row(row["case"], row["strategy"], _regret(row["regret"]), row["severity"])
    return table


def _regret(value: float) -> str:
    return "ineligible" if math.isinf(value) else f"{value:.2f}×"
