"""From the files of cells to files of results, one for each class of machines and software."""

import hashlib
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from strategies import operations, registry
from strategies.measuring import Cell, Machine, Measurement, Run, Status, store
from strategies.sweeps.cells import SweepCell, arguments
from strategies.sweeps.folder import Folder, Known, State
from strategies.sweeps.plan import survey

_OF_A_CELL = ("node", "seconds")
"""Arguments that a class has not in common."""


@dataclass(frozen=True)
class Collected:
    """What was collected: the files that were written, and how many cells have a result.

    Those that failed will get none; those that are missing or running, or whose file is damaged, remain.
    """

    files: tuple[Path, ...]
    measured: int
    failed: tuple[tuple[SweepCell, str], ...]
    remaining: int
    damaged: tuple[str, ...]


def collect(folder: Folder) -> Collected:
    """Writes the files of results anew, each in one step, from all cells that are there.

    While a sweep runs, too, and beside other collectors: the last of them to write has seen no less than
    what was there when any other one ended, since each looks again once it has written.
    """
    surveyed, seen = survey(folder), -1
    while True:
        found = [pair for cells in surveyed.values() for pair in cells]
        ended = sum(known.state in (State.MEASURED, State.FAILED) for _, known in found)
        if ended == seen:
            break
        files = tuple(_written(folder, machines, cells) for machines, cells in surveyed.items())
        seen = ended
        for cells in surveyed.values():
            for i, (cell, known) in enumerate(cells):
                if known.state is not State.MEASURED:
                    cells[i] = cell, folder.known(cell)
    return Collected(
        tuple(path for paths in files for path in paths),
        sum(known.state is State.MEASURED for _, known in found),
        tuple((cell, known.past.reason) for cell, known in found if known.state is State.FAILED),
        len(found) - ended,
        tuple(known.damage for _, known in found if known.damage),
    )


def _written(folder: Folder, machines: str, cells: Iterable[tuple[SweepCell, Known]]) -> list[Path]:
    """One file a fingerprint: nodes of a class may differ in what its pattern does not say."""
    groups: dict[str, list[Run]] = {}
    for cell, known in cells:
        run = _failed(folder, cell, known) if known.state is State.FAILED else known.run
        if run:
            # All that times depend on, but for when and how busy the machine was.
            what = msgspec.structs.replace(run.machine, started_at="", load=None, noise=None)
            fingerprint = hashlib.blake2b(msgspec.json.encode(what), digest_size=4).hexdigest()
            groups.setdefault(fingerprint, []).append(run)
    paths = []
    for fingerprint, runs in groups.items():
        path = folder.path / "results" / f"{machines}-{fingerprint}.json"
        first = min(runs, key=lambda run: run.machine.started_at)
        machine = _observed(first.machine, [run.machine for run in runs])
        common = {name: value for name, value in first.arguments.items() if name not in _OF_A_CELL}
        found = tuple(cell for run in runs for cell in run.cells)
        store.write(path, Run("grid", machine, common, found))
        paths.append(path)
    return paths


def _failed(folder: Folder, cell: SweepCell, known: Known) -> Run:
    """A cell without a result as results say it: no strategy ran, and why."""
    names = registry.distinct(operations.get(cell.case.operation).stem)
    note = f"{len(known.past.failures) + len(known.past.losses)} tries; {known.past.reason}"
    none = [Measurement(name, Status.FAILED, note=note[:200]) for name in names]
    holders = [holder.machine for holder in known.past.failures if holder.machine]
    machine = holders[-1] if holders else Machine(cell.machines)
    means: dict[str, Any] = arguments(folder.sweep, cell.machines) | {"strategies": list(names)}
    return Run("grid", machine, means, (Cell(cell.case, tuple(none)),))


def _observed(first: Machine, machines: Sequence[Machine]) -> Machine:
    """The machine as busy and as noisy as it was in the median cell."""
    seen: dict[str, float | None] = {}
    for name in ("load", "noise"):
        known = [value for each in machines if (value := getattr(each, name)) is not None]
        seen[name] = round(statistics.median(known), 3) if known else None
    return msgspec.structs.replace(first, **seen)
