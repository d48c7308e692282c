"""`backward-strategies check`: whether a strategy does what all strategies must."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from strategies import Strategy
from strategies.commands.common import Device, console, reports_errors
from strategies.measuring.case import Case
from strategies.measuring.measure import prepare
from strategies.selection.text import table


@reports_errors
def check(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The strategy to check.")],
    device: Device = "cpu",
) -> None:
    """Check a strategy against the contract; modules of the current folder are found.

    Exit code 1 says that a check failed.
    """
    from strategies.testing import Status, check_strategy  # needs python-flint

    # Of no strategy: this says whether there is such a device.
    prepare(Case("inv", (1, 1), device=device), ())
    report = check_strategy(_load(target), device)
    styles = {Status.PASSED: "green", Status.FAILED: "bold red", Status.NOT_APPLICABLE: "dim"}
    columns = "check", "result", "what was found"
    lines = table(f"Checks of '{report.strategy}'", columns, wraps=columns[2:])
    for outcome in report.outcomes:
        status = outcome.status
        lines.add_row(outcome.check, status.value, outcome.detail, style=styles[status])
    console.print(lines)
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
    return cast(Strategy, kind())
