"""What a long command shows while it works: what runs, how far it is, and how long it will take.

All of it goes to the error stream, so that what a command prints can be piped. In a terminal it is a
bar; in the log of a build a plain line now and then.
"""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator

from rich import progress as bars
from rich.console import Console

PLAIN_EVERY = 30.0
"""Seconds between two lines in a log."""

Clock = Callable[[], float]
Begin = Callable[[str], None]
"""To be called with each step's name as it begins."""


@contextlib.contextmanager
def progress(total: int, console: Console, clock: Clock = time.monotonic) -> Iterator[Begin]:
    """Shows how far a sequence of steps is."""
    if not console.is_terminal:
        steps = itertools.count()

        def line(seconds: float) -> str:
            if not (done := next(steps)):
                return f"0 of {total} done"
            left = seconds / done * (total - done)
            wait = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
            return f"{done} of {total} done, about {wait} left"

        yield _lines(console, clock, line)
        return
    so_far = bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeElapsedColumn()
    columns = "{task.description}", *so_far, "left", bars.TimeRemainingColumn()
    # Steps may take minutes; rich would forget their speed after thirty seconds.
    with bars.Progress(
        *columns, console=console, transient=True, speed_estimate_period=3600
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(
            task, description=name, advance=bar.tasks[0].description != ""
        )


@contextlib.contextmanager
def countdown(seconds: float, console: Console, clock: Clock = time.monotonic) -> Iterator[Begin]:
    """Shows how much of a given time is over."""
    if not console.is_terminal:
        yield _lines(console, clock, lambda over: f"{over:.0f} of {seconds:.0f} s")
        return
    started = clock()
    columns = bars.BarColumn(), bars.TimeElapsedColumn(), f"of {seconds:.0f} s"
    with bars.Progress("{task.description}", *columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=seconds)
        yield lambda name: bar.update(task, description=name, completed=clock() - started)


def _lines(console: Console, clock: Clock, line: Callable[[float], str]) -> Begin:
    """A line for the first step, and then for the step that begins when it is time for a line."""
    started, printed = clock(), -math.inf

    def begin(name: str) -> None:
        nonlocal printed
        seconds = clock() - started
        said = line(seconds)
        if seconds - printed >= PLAIN_EVERY:
            printed = seconds
            console.print(f"{said}: {name}", highlight=False)

    return begin
