"""`backward-strategies check`: whether a strategy does what all strategies must."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from strategies import Strategy, registry
from strategies.cli.common import Device, console, notes
from strategies.errors import message_of
from strategies.measuring.case import Case
from strategies.measuring.measure import prepare
from strategies.selection.text import table


def check(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The strategy to check.")],
    device: Device = "cpu",
) -> None:
    """Check a strategy against the contract; modules of the current folder are found.

    Exit code 1 says that a check failed, or that there is no instance to check; 2 that there is no
    such strategy or device.
    """
    from strategies.testing import Status, check_strategy

    # Of no strategy: this says whether there is such a device.
    prepare(Case("inv", (1, 1), device=device), ())
    report = check_strategy(_instance(target), device)
    styles = {Status.PASSED: "green", Status.FAILED: "bold red", Status.NOT_APPLICABLE: "dim"}
    columns = "check", "result", "what was found"
    lines = table("", columns, wraps=columns[2:])
    for outcome in report.outcomes:
        status = outcome.status
        lines.add_row(outcome.check, status.value, Text(outcome.detail), style=styles[status])
    console.print(f"Checks of {report.strategy!r}")
    console.print(lines)
    console.print(f"{target}: {report.verdict}")
    if not report.passed:
        raise typer.Exit(1)


def _instance(target: str) -> Strategy:
    module, colon, name = target.partition(":")
    if not colon:
        raise ValueError(f"{target!r} is not of the form module:Class")
    sys.path.insert(0, str(Path.cwd()))
    try:
        kind = getattr(importlib.import_module(module), name, None)
        if isinstance(kind, type) and issubclass(kind, Strategy):
            return registry.made(kind)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the strategy's own code raises
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise  # there is no such module
        notes.print(f"{target}: cannot be checked: {message_of(error)}", soft_wrap=True)
        raise typer.Exit(1) from error
    if kind is None:
        raise LookupError(f"there is no {name} in {module}")
    raise LookupError(f"{name} in {module} is not a subclass of strategies.Strategy")
