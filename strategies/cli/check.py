"""`backward-strategies check`: whether a strategy does what all strategies must."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from strategies import Strategy, registry
from strategies.cli.common import Device, console, notes, reports_errors
from strategies.errors import message_of
from strategies.measuring.case import Case
from strategies.measuring.measure import prepare
from strategies.selection.text import table


@reports_errors
def check(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The strategy to check.")],
    device: Device = "cpu",
) -> None:
    """Check a strategy against the contract; modules of the current folder are found.

    Exit code 1 says that a check failed, or that there is no instance to check; 2 that there is no
    such strategy or device.
    """
    from strategies.testing import Status, check_strategy  # needs python-flint

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
    """What MODULE:CLASS names."""
    module, colon, name = target.partition(":")
    if not colon:
        raise ValueError(f"{target!r} is not of the form module:Class")
    sys.path.insert(0, str(Path.cwd()))
    with _reports_foreign_code(target, module):
        imported = importlib.import_module(module)
    kind = getattr(imported, name, None)
    is_strategy = isinstance(kind, type) and issubclass(kind, Strategy)
    if not is_strategy:
        raise LookupError(f"{name} in {module} is not a subclass of strategies.Strategy")
    with _reports_foreign_code(target, module):
        return registry.made(kind)


@contextlib.contextmanager
def _reports_foreign_code(target: str, module: str) -> Iterator[None]:
    """Whatever the strategy's own code raises is one line and exit code 1."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise  # there is no such module
        notes.print(f"{target}: cannot be checked: {message_of(error)}", soft_wrap=True)
        raise typer.Exit(1) from error
