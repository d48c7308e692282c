"""What the subcommands share: their common options, and how errors are told."""

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import strategies
from strategies.files.writing import require_writable
from strategies.kernels import extension
from strategies.measuring.measurement import Objective

P = ParamSpec("P")
R = TypeVar("R")

# A file or a pipe has no width of its own: what fits the log of a build, unless COLUMNS says more.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120

# Names, reasons and paths are printed as they are: their brackets and colons are no markup.
console = Console(width=_WIDTH, markup=False, emoji=False, highlight=False)
notes = Console(stderr=True, markup=False, emoji=False, highlight=False)
"""For what is not the answer: progress, errors, and how to go on."""

DEFAULT_RESULTS = Path("out/results")

Results = Annotated[
    Path, typer.Option("--results", metavar="PATH", help="A result file, or a folder of them.")
]
Accuracy = Annotated[
    float | None,
    typer.Option(metavar="ERROR", help="Largest relative error accepted; by default any."),
]
Memory = Annotated[
    float | None, typer.Option(metavar="BYTES", help="Most memory the backward may take.")
]
Goal = Annotated[Objective, typer.Option("--objective", help="What is to be small.")]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="As cpu or cuda:0.")]
Dtype = Annotated[str | None, typer.Option(help="As float64.")]
Operation = Annotated[str | None, typer.Option(help="A name of torch.linalg.")]
Seed = Annotated[int, typer.Option(min=0, help="Determines the cases.")]


def file_option(text: str, *names: str, **options: Any) -> Any:
    """An option that names a file."""
    return typer.Option(*names, metavar="FILE", help=text, **options)


def writable(path: Path | None) -> Path | None:
    """A file that is written when the work is done; UnusableFileError at once if it cannot be."""
    if path is not None:
        require_writable(path)
    return path


def build_fast_path() -> None:
    """`strategies.warmup`, and say so while it takes time."""
    if extension.is_missing():
        with notes.status("building the fast path for this version of PyTorch: half a minute"):
            strategies.warmup()


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
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
            said = " ".join(str(error).split())
            notes.print(Text.assemble(("error: ", "red"), said), soft_wrap=True)
            raise SystemExit(2) from error
        except KeyboardInterrupt as stop:
            notes.print(": ".join(["interrupted", *map(str, stop.args)]), soft_wrap=True)
            raise SystemExit(130) from stop

    return wrapped


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Within, SIGTERM raises SystemExit, which leaves no process and no temporary file behind."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class ReportingGroup(TyperGroup):
    """Commands whose errors are told as by `reports_errors`."""

    def invoke(self, ctx: Any) -> Any:
        with terminable():
            return reports_errors(super().invoke)(ctx)
