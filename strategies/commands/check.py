"""`backward-strategies check`: whether a strategy does what all strategies must."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from strategies import Strategy
from strategies.commands.common import console, tells_errors


@tells_errors
def check(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The strategy to check.")],
    device: Annotated[str, typer.Option(help="As cpu or cuda:0.")] = "cpu",
) -> None:
    """Check a strategy against the contract; modules of the current folder are found.

    Exit code 1 says that a check failed.
    """
    strategy = _load(target)
    from strategies.testing import Status, check_strategy

    report = check_strategy(strategy, device)
    styles = {Status.PASSED: "green", Status.FAILED: "bold red", Status.NOT_APPLICABLE: "dim"}
    table = Table("check", "result", "what was found", title=f"Conformance of '{report.strategy}'")
    for outcome in report.outcomes:
        style = styles[outcome.status]
        table.add_row(
            escape(outcome.check), f"[{style}]{outcome.status.value}[/]", escape(outcome.detail)
        )
    console.print(table)
    if not report.passed:
        console.print(f"{target}: {len(report.failures)} of {len(report.outcomes)} checks failed")
        raise typer.Exit(1)
    console.print(f"{target}: in order")


def _load(target: str) -> Strategy:
    module, colon, name = target.partition(":")
    if not colon:
        raise ValueError(f"{target!r} is not of the form module:Class")
    sys.path.insert(0, str(Path.cwd()))
    kind: Any = getattr(importlib.import_module(module), name, None)
    is_strategy = isinstance(kind, type) and issubclass(kind, Strategy)
    if not is_strategy:
        raise ValueError(f"{name} in {module} is not a subclass of strategies.Strategy")
    instance: Strategy = kind()
    return instance
