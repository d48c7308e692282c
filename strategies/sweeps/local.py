"""A sweep on this machine, one cell at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence

from strategies.sweeps.cells import Task
from strategies.sweeps.config import Sweep
from strategies.sweeps.folder import Folder

__all__ = ["run"]


def run(sweep: Sweep, machines: str, tasks: Sequence[Task]) -> None:
    """Works on cells of a class until all are done, or Ctrl-C.

    In a process of its own: the number of threads and their cores are those of a process.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=_work, args=(sweep, machines, tasks)
    )
    process.start()
    try:
        process.join()
    except KeyboardInterrupt:
        process.join()  # it has heard it, too
        raise


def _work(sweep: Sweep, machines: str, tasks: Sequence[Task]) -> None:
    from strategies.sweeps.worker import work  # workers need Unix; a command line does not

    try:
        work(Folder(sweep), machines, tasks, lambda said: print(said, flush=True))
    except ValueError as error:
        raise SystemExit(f"error: {error}") from error
