"""What a long command shows while it works: what runs, how far it is, and how long it will take.

All of it goes to the error stream, so that what a command prints can be piped. In a terminal it is a
bar; in the log of a build a plain line now and then.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_EVERY = 30.0
"""Seconds between two lines in a log."""


@contextlib.contextmanager
def progress(
    total: int, console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Shows how far a sequence of steps is; to be called with each step's name as it begins."""
    if not console.is_terminal:
        yield _Lines(total, console, clock)
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "left", TimeRemainingColumn()
    # Steps may take minutes; rich would forget their speed after thirty seconds.
    with Progress(
        "{task.description}", *columns, console=console, transient=True, speed_estimate_period=3600
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda name: bar.update(
            task, description=name, advance=bar.tasks[0].description != ""
        )


@contextlib.contextmanager
def countdown(
    seconds: float, console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Shows how much of a given time is over; to be called with each step's name as it begins."""
    started = clock()
    if not console.is_terminal:
        printed = -math.inf

        def line(name: str) -> None:
            nonlocal printed
            now = clock()
            if now - printed >= PLAIN_EVERY:
                printed = now
                console.print(f"{now - started:.0f} of {seconds:.0f} s: {name}", highlight=False)

        yield line
        return
    columns = BarColumn(), TimeElapsedColumn(), f"of {seconds:.0f} s"
    with Progress("{task.description}", *columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=seconds)
        yield lambda name: bar.update(task, description=name, completed=clock() - started)


class _Lines:
    """A line for the first step, and then for the step that begins when it is time for a line."""

    def __init__(self, total: int, console: Console, clock: Callable[[], float]) -> None:
        self.total, self.console, self.clock = total, console, clock
        self.done = -1
        self.started, self.printed = clock(), -math.inf

    def __call__(self, name: str) -> None:
        now = self.clock()
        self.done += 1
        if now - self.printed < PLAIN_EVERY:
            return
        self.printed = now
        left = ""
        if self.done:
            wait = (now - self.started) / self.done * (self.total - self.done)
            left = (
                ", about " + (f"{wait:.0f} s" if wait < 100 else f"{wait / 60:.0f} min") + " left"
            )
        self.console.print(f"{self.done} of {self.total} done{left}: {name}", highlight=False)
