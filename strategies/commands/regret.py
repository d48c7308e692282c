"""`backward-strategies regret`: how good a policy is on cases it has not seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

import strategies
from strategies.commands.common import console, notes, tells_errors
from strategies.commands.progress import progress
from strategies.selection import policy_building
from strategies.selection import regret as regrets
from strategies.selection.held_out import Scores
from strategies.selection.verdicts import Objective

BUDGET = 1.5
"""Seconds for the rounds of a case. With what goes before, a case takes two or three."""


@tells_errors
def regret(
    policy_file: Annotated[Path, typer.Argument(metavar="POLICY")],
    cases: Annotated[int, typer.Option(min=1, help="How many cases to draw.")] = 150,
    seed: Annotated[int, typer.Option(help="Determines the cases.")] = 0,
    device: Annotated[str, typer.Option(help="As cpu or cuda:0.")] = "cpu",
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the measurements there, and measure only what it lacks."
        ),
    ] = None,
) -> None:
    """Run every strategy on cases drawn at random, and score the policy's choices.

    With --scores an interrupted run goes on where it stopped, and another policy is scored on the
    same measurements.
    """
    policy = policy_building.read(policy_file)
    if policy_building.flat(policy).empty:
        raise ValueError(f"{policy_file}: holds no cells to be judged")
    names = strategies.available()
    kept = Scores(scores, seed, device, names, Objective(policy["criteria"]["objective"]))
    try:
        with progress(max(cases - len(kept.cases), 0), notes) as begin:
            measured = kept.complete(cases, BUDGET, begin)
    except KeyboardInterrupt:
        if scores is None:
            raise
        raise KeyboardInterrupt(
            f"{len(kept.cases)} of {cases} cases are in {scores}; the same command goes on from there"
        ) from None
    scored = regrets.score(measured, policy, names)
    console.print(_summary_table(regrets.summary(scored), seed))
    _print_against_native(scored)
    wrong = regrets.wrong_choices(scored)
    if len(wrong):
        console.print(_wrong_table(wrong))


def _summary_table(summary: pd.DataFrame, seed: int) -> Table:
    count = int(summary["cases"].max())
    table = Table(title=f"Regret over {count} held-out cases, seed {seed}", title_justify="left")
    for name in ("choice", "median", "p95", "worst", "eligible in", "× native"):
        table.add_column(name, justify="left" if name == "choice" else "right")
    for _, row in summary.reset_index().iterrows():
        figures = (_regret(row[name]) for name in ("median", "p95", "worst"))
        table.add_row(
            str(row["choice"]), *figures, f"{row['eligible']:.0%}", f"{row['over_native']:.3g}"
        )
    return table


def _print_against_native(scored: pd.DataFrame) -> None:
    policy = scored[scored["choice"].eq("policy")]
    both = policy[policy["over_native"].notna()]
    mean = regrets.summary(policy)["over_native"].item()
    slower = regrets.slower_than_native(scored)
    console.print(
        f"The policy is {mean:.2f} times as fast as native, as a geometric mean over the {len(both)} "
        f"cases where both ran, and slower by more than {regrets.SLOWER}× in {len(slower)}."
    )
    if slower.empty:
        return
    table = Table(title="Where it is slower than native", title_justify="left")
    for name in ("case", "chose", "time over native's", "interval", "native"):
        table.add_column(name)
    for _, row in slower.iterrows():
        ends = 1 / row["over_native_high"], 1 / row["over_native_low"]
        table.add_row(
            row["case"],
            row["strategy"],
            f"{1 / row['over_native']:.2f}×",
            f"{ends[0]:.2f}-{ends[1]:.2f}",
            f"ineligible: {row['native']}" if row["native"] else "eligible",
        )
    console.print(table)


def _wrong_table(wrong: pd.DataFrame) -> Table:
    table = Table(title="Where the policy chose wrongly", title_justify="left")
    for name in ("case", "chose", "regret", "at least", "severity"):
        table.add_column(name)
    for _, row in wrong.iterrows():
        least = "-" if math.isinf(row["regret"]) else f"{row['regret_low']:.2f}×"
        table.add_row(row["case"], row["strategy"], _regret(row["regret"]), least, row["severity"])
    return table


def _regret(value: float) -> str:
    return "ineligible" if math.isinf(value) else f"{value:.2f}×"
