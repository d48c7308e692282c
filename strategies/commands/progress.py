"""What a long command shows while it works: what runs, how far it is, and how long it will take.

All of it goes to the error stream, so that what a command prints can be piped. In a terminal it is a
bar; in the log of a build a plain line now and then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_EVERY = 30.0
"""Seconds between two lines in a log."""


@contextlib.contextmanager
def progress(
    total: int, console: Console, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Shows how far a sequence of steps is; to be called with each step's name as it begins.

    Args:
        total: how many steps there are.
        console: where to show it.
        clock: reads seconds.

    Example:
        >>> with progress(2, Console(stderr=True)) as begin:
        ...     for name in ("first", "second"):
        ...         begin(name)
    """
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("", total=total)
            yield lambda name: bar.update(
                task, description=name, advance=bar.tasks[0].description != ""
            )
    else:
        yield _Lines(total, console, clock)


def duration(seconds: float) -> str:
    """A time to wait, as people say it.

    Example:
        >>> duration(42.4), duration(300)
        ('42 s', '5 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        # Steps may take minutes; rich would forget their speed after thirty seconds.
        speed_estimate_period=3600,
    )


class _Lines:
    """A line for the first step, and then for the step that begins when it is time for a line."""

    def __init__(self, total: int, console: Console, clock: Callable[[], float]) -> None:
        self.total, self.console, self.clock = total, console, clock
        self.begun = 0
        self.started = self.printed = clock()

    def __call__(self, name: str) -> None:
        now, done = self.clock(), self.begun
        self.begun += 1
        if done and now - self.printed < PLAIN_EVERY:
            return
        self.printed = now
        spent = now - self.started
        left = f", about {duration(spent / done * (self.total - done))} left" if done else ""
        self.console.print(f"{done} of {self.total} done{left}: {name}", highlight=False)
