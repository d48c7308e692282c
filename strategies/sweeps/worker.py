"""A worker measures cells one after the other on cores of its own, and keeps what comes of each."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from strategies.measuring import Machine, Run, store
from strategies.sweeps import attempts
from strategies.sweeps.attempts import Try
from strategies.sweeps.cell import measure_case, report_machine
from strategies.sweeps.cells import SweepCell, arguments
from strategies.sweeps.config import MachineClass
from strategies.sweeps.folder import Folder, State
from strategies.sweeps.processes import Child, Stop

_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def work(folder: Folder, machines: str, cells: Sequence[SweepCell]) -> int | None:
    """Measures what is missing of these cells, each in a process of its own on pinned cores.

    What another worker is at, and what has failed often enough, is left out. Returns the signal that ended
    the work before its time, or None. ValueError says that this machine is not of the class.
    """
    with Stop() as stop:
        machine = _admitted(folder, machines)
        for count, cell in enumerate(cells, 1):
            where = f"{count} of {len(cells)}: {cell.case}"
            while not stop.signal and (attempt := _begin(folder, cell)):
                try:
                    said = _tried(folder, machine, cell, attempt, stop)
                finally:
                    attempt.release()
                if said:
                    print(f"{where}: {said}", flush=True)
        return stop.signal


def _admitted(folder: Folder, machines: str) -> Machine:
    """This machine under the name of its class, with its cores pinned; a refusal is kept."""
    try:
        machine = _fitting(folder.sweep.classes[machines])
    except ValueError as error:
        node = attempts.this_process().node
        folder.refuse(machines, node, str(error))
        raise ValueError(f"{node} is not of class {machines}: {error}") from error
    return msgspec.structs.replace(machine, name=machines)


def _fitting(chosen: MachineClass) -> Machine:
    _pin(chosen.threads)
    with Child(report_machine, chosen.threads) as child:
        machine = next(filter(None, child.messages()), None)
        if machine is None:
            raise ValueError(child.ending())
    for what in ("cpu", "gpu"):
        pattern, model = getattr(chosen, what), getattr(machine, what)
        if pattern and not re.search(pattern, model):
            raise ValueError(f"its {what} is {model or 'none'}, not {pattern}")
    return machine


def _pin(threads: int) -> None:
    """Lets this process, and those that it starts, use as many cores as threads."""
    os.environ.update(dict.fromkeys(_COUNTS, str(threads)))
    if not hasattr(os, "sched_setaffinity"):  # outside Linux
        return
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, spread(allowed, map(_core, allowed), threads))


def spread(processors: Sequence[int], cores: Iterable[str], threads: int) -> list[int]:
    """One processor of each core first, then the others, in their order.

    Example:
        >>> spread([0, 1, 2, 3], ["a", "a", "b", "b"], 3)
        [0, 2, 1]
    """
    if len(processors) < threads:
        allowed = len(processors)
        raise ValueError(f"{threads} threads need as many processors; {allowed} may be used")
    first: dict[str, int] = {}
    for processor, core in zip(processors, cores, strict=True):
        first.setdefault(core, processor)
    return list(dict.fromkeys((*first.values(), *processors)))[:threads]


def _core(processor: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return path.read_text().strip() if path.exists() else str(processor)


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


def _tried(folder: Folder, machine: Machine, cell: SweepCell, attempt: Try, stop: Stop) -> str:
    """Runs a cell's process once, keeps what comes of it, and says so."""
    budget = folder.sweep.budget
    with Child(measure_case, cell.case, cell.objectives, budget, machine.threads) as child:
        ended = _watch(child, attempt, stop, cell.timeout)
        if isinstance(ended, str):
            attempt.fail(machine, ended)
            return f"try {attempt.number} failed: {ended}"
        if ended is None or not attempt.is_mine():
            return ""
        where = {"node": attempts.this_process().node, "seconds": round(child.seconds, 2)}
        means = arguments(folder.sweep, cell.machines) | ended.arguments | where
        named = msgspec.structs.replace(ended.machine, name=cell.machines)
        kept = msgspec.structs.replace(ended, machine=named, arguments=means)
        store.write(folder.result(cell), kept)
        return f"{child.seconds:.1f} s"


def _watch(child: Child, attempt: Try, stop: Stop, timeout: float) -> Run | str | None:
    """What a cell's process measures, or why it fails; None where it has to stop."""
    doing = ""
    for message in child.messages():
        match message:
            case str():
                doing = f", in {message}"
            case RuntimeError():
                return f"raised {message}{doing}"
            case Run():
                return message
        if stop.signal or not attempt.is_mine():
            return None
        if child.seconds > timeout:
            return f"took more than {timeout:.0f} s{doing}"
    return child.ending() + doing
