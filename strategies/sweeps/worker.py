"""A worker measures cells one after the other, and keeps what comes of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from strategies.measuring.machine import Machine
from strategies.measuring.store import Run
from strategies.sweeps import attempts
from strategies.sweeps.attempts import Try
from strategies.sweeps.cell import Began, Measured, Raised, measure_case, report_machine
from strategies.sweeps.cells import SweepCell, Task, arguments
from strategies.sweeps.folder import Folder, Refusal, State
from strategies.sweeps.pinning import pin
from strategies.sweeps.processes import Child, Stop

__all__ = ["work"]


@dataclass(frozen=True)
class _Ending:
    """How a try went: measured, failed for a reason, or neither."""

    measured: Measured | None = None
    reason: str = ""


def work(
    folder: Folder, machines: str, tasks: Sequence[Task], tell: Callable[[str], None]
) -> int | None:
    """Measures what is missing of these cells, each in a process of its own on pinned cores.

    What another worker is at, and what has failed often enough, is left out.

    Returns:
        The signal that ended the work before its time, or None.

    Raises:
        ValueError: this machine is not of the class.
        UnusableFileError: results cannot be written.
    """
    with Stop() as stop:
        worker = _Worker(folder, _admitted(folder, machines), stop, tell)
        for count, task in enumerate(tasks, 1):
            where = f"{count} of {len(tasks)}: {task.cell.case}"
            while not stop.signal and (attempt := _begin(folder, task.cell)):
                if not worker.fails(task, attempt, where):
                    break
        return stop.signal


@dataclass(frozen=True)
class _Worker:
    folder: Folder
    machine: Machine
    stop: Stop
    tell: Callable[[str], None]

    def fails(self, task: Task, attempt: Try, where: str) -> bool:
        """Runs a cell's process once and keeps what comes of it."""
        cell, budget = task.cell, self.folder.sweep.budget
        failed = False
        try:
            child = Child(measure_case, cell.case, cell.objectives, budget, self.machine.threads)
            ending = _watch(child, attempt, self.stop, task.timeout)
            if ending.reason:
                attempt.fail(self.machine, ending.reason)
                failed = True
                self.tell(f"{where}: try {attempt.number} failed: {ending.reason}")
            elif ending.measured and attempt.is_mine():
                run = _run(self.folder, cell.machines, ending.measured, child.seconds)
                self.folder.keep(cell, run)
                self.tell(f"{where}: {child.seconds:.1f} s")
        finally:
            if not failed:
                attempt.release()
        return failed


def _admitted(folder: Folder, machines: str) -> Machine:
    """This machine under the name of its class, with its cores pinned; a refusal is kept."""
    chosen = folder.sweep.classes[machines]
    problem, found = "", []
    try:
        pin(chosen.threads)
    except ValueError as error:
        problem = str(error)
    else:
        child = Child(report_machine, chosen.threads)
        found = [message for message in child.messages() if message]
        ended = child.end()
        for what in ("cpu", "gpu"):
            pattern = getattr(chosen, what)
            model = getattr(found[0], what) if found else ""
            if not found:
                problem = ended
            elif pattern and not re.search(pattern, model):
                problem = f"its {what} is {model or 'none'}, not {pattern}"
    if problem:
        node = attempts.this_process().node
        folder.refuse(machines, Refusal(node, folder.expected(machines), problem))
        raise ValueError(f"{node} is not of class {machines}: {problem}")
    return msgspec.structs.replace(found[0], name=machines)


def _begin(folder: Folder, cell: SweepCell) -> Try | None:
    """A try of a cell, if it is missing and nobody is at it."""
    if folder.known(cell).state is not State.MISSING:
        return None
    attempt = attempts.begin(folder.tries(cell), attempts.this_process())
    # It may have been measured between the two lines above.
    if attempt and folder.known(cell).state is State.MEASURED:
        attempt.release()
        return None
    return attempt


def _watch(child: Child, attempt: Try, stop: Stop, timeout: float) -> _Ending:
    """Waits for the end of a cell's process, or brings it about."""
    doing = ""
    for message in child.messages():
        match message:
            case Began():
                doing = f", in {message.name}"
            case Raised():
                child.end()
                return _Ending(reason=f"raised {message.reason}{doing}")
            case Measured():
                child.end()
                return _Ending(message)
        if stop.signal or not attempt.is_mine():
            child.end()
            return _Ending()
        if child.seconds > timeout:
            child.end()
            return _Ending(reason=f"took more than {timeout:.0f} s{doing}")
    return _Ending(reason=child.end() + doing)


def _run(folder: Folder, machines: str, measured: Measured, seconds: float) -> Run:
    """What is kept of a cell: a run like any other, by the name of its class."""
    where = {"node": attempts.this_process().node, "seconds": round(seconds, 2)}
    means = arguments(folder.sweep, machines) | {"strategies": list(measured.strategies)}
    machine = msgspec.structs.replace(measured.machine, name=machines)
    return Run("grid", machine, means | where, (measured.cell,))
