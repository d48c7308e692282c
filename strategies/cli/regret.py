"""`backward-strategies regret`: how good a policy is on cases it has not seen."""

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from strategies import policy as policies_in_force
from strategies import registry
from strategies.cli.common import Device, Seed, console, file_option
from strategies.cli.measure import resumable
from strategies.errors import UnusableFileError
from strategies.measuring import TIMED, Cell, Objective, describe, measure, store
from strategies.measuring.noise import with_load_and_noise
from strategies.policy.schema import Policy
from strategies.selection import policies
from strategies.selection import regret as regrets
from strategies.selection.draws import draw_cases
from strategies.selection.regret import POLICY, SLOWER, Score, Summary
from strategies.selection.text import table

BUDGET = 1.5
"""Seconds for the rounds of a case. With what goes before, a case takes two or three."""


def regret(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="A file; or auto, what is in force; or shipped.")
    ],
    cases: Annotated[int, typer.Option(min=1, help="How many cases to draw.")] = 150,
    seed: Seed = 0,
    device: Device = "cpu",
    against: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Another one, on the same cases.")
    ] = None,
    scores: Annotated[
        Path | None, file_option("Keep the measurements there, and measure only what it lacks.")
    ] = None,
) -> None:
    """Run every strategy on cases drawn at random, and score the policy's choices.

    With --scores an interrupted run is resumed, and another policy is scored on the same
    measurements.
    """
    judged = _named(policy, device)
    other = _named(against, device) if against else None
    objective = regrets.criteria_of(judged).objective
    if other and regrets.criteria_of(other).objective is not objective:
        raise ValueError(f"{against} is not by {objective}, as {policy} is")
    cells = _measured(cases, seed, device, objective, scores)
    compared = scored = regrets.score(cells, judged)
    if not scored:
        raise ValueError(f"no strategy is eligible by {policy} in any of the drawn cases")
    ours = regrets.of_policy(scored)
    if against and other:
        theirs = regrets.of_policy(regrets.score(cells, other))
        compared = [each for each in scored if each.choice != POLICY]
        for name, of in ((policy, ours), (against, theirs)):
            compared += [replace(each, choice=f"{POLICY} {name}") for each in of]
    console.print(_summary_table(regrets.summaries(compared), seed))
    (summary,) = regrets.summaries(ours)
    both = sum(not math.isnan(each.over_native[0]) for each in ours)
    slower = regrets.slower_than_native(ours)
    console.print(
        f"The policy is {summary.over_native:.2f} times as fast as native, as a geometric mean over the "
        f"{both} cases where both ran, and slower by more than {SLOWER}× in {len(slower)}."
    )
    if slower:
        console.print(_slower_table(slower))
    if wrong := regrets.wrong_choices(ours):
        console.print(_wrong_table(wrong))


def _named(name: str, device: str) -> Policy:
    """The policy of a file, or that is in force, or shipped."""
    choice = name if name == policies_in_force.SHIPPED_NAME else Path(name)
    with policies_in_force.use(choice) if name != "auto" else contextlib.nullcontext():
        found, source = policies_in_force.active(device)
    if isinstance(found, Policy):
        if not policies.by_case(found):
            raise ValueError(f"{name}: holds no cells to be judged")
        return found
    raise ValueError(f"{source}: that is a strategy, and no policy to be judged")


def _measured(
    count: int, seed: int, device: str, objective: Objective, path: Path | None
) -> list[Cell]:
    """The cells of the first cases of a draw: those that a file keeps, and those measured now.

    A file of another draw cannot be used, nor one of another machine that is not complete.
    """
    drawn, names = draw_cases(count, device, seed), registry.available()
    timed = [each for each in TIMED if each is objective]
    kept = store.load(path) if path and path.exists() else []
    cells = [cell for run in kept for cell in run.cells]
    others = [cell for cell, case in zip(cells, drawn, strict=False) if cell.case != case]
    if path and (others or any(run.arguments.get("objective") != objective for run in kept)):
        raise UnusableFileError(path, f"is not of this draw, by {objective}")
    if len(cells) >= count:
        return cells[:count]
    arguments = {"seed": seed, "device": device, "objective": str(objective)}
    arguments["strategies"] = list(names)
    writer = store.Writer(path, "draw", arguments, with_load_and_noise(describe()))
    with resumable(writer, drawn) as missing:
        for case in missing:
            writer.append(measure(case, names, objectives=timed, budget=BUDGET))
    return writer.cells


def _summary_table(summaries: list[Summary], seed: int) -> Table:
    count = max(summary.cases for summary in summaries)
    columns = "median", "mean", "p95", "worst", "eligible in", "× native"
    lines = table(f"Regret over {count} drawn cases, seed {seed}", ["choice"], columns)
    for each in summaries:
        figures = map(_regret, (each.median, each.mean, each.p95, each.worst))
        lines.add_row(each.choice, *figures, f"{each.eligible:.0%}", f"{each.over_native:.3g}")
    return lines


def _slower_table(slower: list[Score]) -> Table:
    title, columns = "Where it is slower than native", ("case", "chose", "native")
    lines = table(title, columns, ("time over native's", "interval"), wraps=("case", "native"))
    for each in slower:
        ratio, low, high = each.over_native
        native = f"ineligible: {each.native}" if each.native else "eligible"
        figures = f"{1 / ratio:.2f}×", f"{1 / high:.2f}-{1 / low:.2f}"
        lines.add_row(str(each.case), each.strategy, native, *figures)
    return lines


def _wrong_table(wrong: list[Score]) -> Table:
    title, columns = "Where the policy chose wrongly", ("case", "chose", "severity")
    lines = table(title, columns, ("regret", "at least"), wraps=["case"])
    for each in wrong:
        least = "-" if math.isinf(each.regret) else f"{max(each.regret_low, 1.0):.2f}×"
        lines.add_row(str(each.case), each.strategy, each.severity, _regret(each.regret), least)
    return lines


def _regret(value: float) -> str:
    return "ineligible" if math.isinf(value) else f"{value:.2f}×"
