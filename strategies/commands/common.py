"""What the subcommands share: where results are, and how errors are told."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import typer
from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")

# A file or a pipe has no width of its own: what fits the log of a build, unless COLUMNS says more.
console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120)
notes = Console(stderr=True)
"""For what is not the answer: progress, errors, and how to go on."""

Results = Annotated[
    Path,
    typer.Option(
        "--results", metavar="DIR", help="Folder of asv or pytest-benchmark result files."
    ),
]
DEFAULT_RESULTS = Path(".asv/results")
"""Where `asv run` keeps what it measures in this checkout."""


def tells_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turns the errors that a user can cause into one line and exit code 2.

    What is wrong with files, names and values arrives as ValueError and LookupError, a missing
    optional library as ImportError; anything else is a defect, and keeps its traceback. Ctrl-C ends
    with what its KeyboardInterrupt says, and exit code 130.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (ImportError, LookupError, ValueError) as error:
            notes.print(f"[red]error:[/] {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt as stop:
            said = ": ".join(["interrupted", *map(str, stop.args)])
            notes.print(said, highlight=False, soft_wrap=True)
            raise typer.Exit(130) from stop

    return wrapped
