"""The plan of a sweep: which cells are to be measured, packed into chunks of equal length."""

import heapq
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from strategies.sweeps.cells import SweepCell, cells_of
from strategies.sweeps.config import Sweep
from strategies.sweeps.estimates import Estimates
from strategies.sweeps.folder import Folder, Known, State

_TIMEOUT = 20.0
_SHORTEST_TIMEOUT = 600.0
"""A cell hangs after so many times its estimate, and not before these seconds: a first one may compile."""

_MARGIN = 300.0
"""Seconds in a job for its start."""


@dataclass(frozen=True)
class ClassPlan:
    """What a class is to do: the chunk of every job, and the seconds that it is expected to take.

    Of `measured` cells the seconds are known, as they were measured here or by another class.
    """

    machines: str
    chunks: tuple[tuple[SweepCell, ...], ...]
    seconds: tuple[float, ...]
    measured: int

    @property
    def limits(self) -> list[int]:
        """Minutes that each job needs at most: twice what is expected, and for one cell that hangs."""
        return [
            math.ceil((2 * seconds + max(cell.timeout for cell in chunk) + _MARGIN) / 60)
            for chunk, seconds in zip(self.chunks, self.seconds, strict=True)
        ]


def survey(folder: Folder) -> dict[str, list[tuple[SweepCell, Known]]]:
    """All cells of all classes, with what is known of each."""
    return {
        machines: [(cell, folder.known(cell)) for cell in cells_of(folder.sweep, machines)]
        for machines in folder.sweep.classes
    }


def plans(folder: Folder, queued: Mapping[str, Collection[str]] = {}) -> list[ClassPlan]:
    """By classes, the cells that are missing and in no job, in chunks of the sweep's length.

    What some job will measure is `queued`, by class and the keys of cells.
    """
    surveyed = survey(folder)
    pairs = itertools.chain(*surveyed.values())
    took = [(cell, known.seconds) for cell, known in pairs if known.seconds]
    estimates = Estimates(took, folder.sweep.budget)
    found = []
    for machines, cells in surveyed.items():
        waiting = queued.get(machines, ())
        missing = [cell for cell, known in cells if known.state is State.MISSING]
        missing = [cell for cell in missing if cell.key not in waiting]
        found.append(_plan(folder.sweep, machines, missing, estimates))
    return found


def _plan(sweep: Sweep, machines: str, missing: list[SweepCell], estimates: Estimates) -> ClassPlan:
    seconds = [estimates.seconds(cell) for cell in missing]
    cells = [
        replace(cell, timeout=sweep.timeout or max(_SHORTEST_TIMEOUT, _TIMEOUT * each))
        for cell, each in zip(missing, seconds, strict=True)
    ]
    chunks = pack(seconds, 60 * sweep.chunk_minutes)
    return ClassPlan(
        machines,
        tuple(tuple(cells[index] for index in chunk) for chunk in chunks),
        tuple(math.fsum(seconds[index] for index in chunk) for chunk in chunks),
        sum(map(estimates.is_measured, missing)),
    )


def pack(seconds: Sequence[float], length: float) -> list[list[int]]:
    """The indices of pieces in as few chunks as could do, all about equally long.

    The longest piece that is left goes to the chunk that has least (Graham 1969, longest processing time
    first); within a chunk the order is kept.
    """
    count = min(len(seconds), math.ceil(math.fsum(seconds) / length))
    heap: list[tuple[float, int, list[int]]] = [(0.0, chunk, []) for chunk in range(count)]
    for index in sorted(range(len(seconds)), key=lambda index: -seconds[index]):
        total, chunk, pieces = heap[0]
        heapq.heapreplace(heap, (total + seconds[index], chunk, [*pieces, index]))
    return [sorted(pieces) for _, _, pieces in sorted(heap, key=lambda entry: entry[1])]
