"""The plan of a sweep: which cells are to be measured, packed into chunks of equal length.

How long a cell takes is what was measured where that is known, else what follows from the work it is.
"""

import heapq
import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from strategies import operations, registry
from strategies.measuring.case import Case
from strategies.measuring.clock import SHORTEST_BLOCK
from strategies.measuring.errors import CHECKED, LARGEST_EXACT
from strategies.measuring.work import svd_flops
from strategies.measuring.workload import is_affordable
from strategies.policy import BASELINE
from strategies.sweeps.cells import SweepCell, cells_of
from strategies.sweeps.config import Sweep
from strategies.sweeps.folder import Folder, Known, State

_TIMEOUT = 20.0
_SHORTEST_TIMEOUT = 600.0
"""A cell hangs after so many times its estimate, and not before these seconds: a first one may compile."""

_MARGIN = 300.0
"""Seconds in a job for its start."""

_START = 1.5
"""Seconds of a process before it measures; the kernels of a dtype are loaded in them."""

_FLOPS_A_SECOND = {"cpu": 4e9, "cuda": 2e11}
"""Of an SVD, the slowest of the strategies."""

_CALLS_ALONE = 4
"""Of each strategy, before it is timed: whether it runs, its error, and its memory."""

_CALLS_TIMED = 5
"""Of each, for each objective: those that warm up and screen. The slowest sits the rounds out."""

_ROUNDS = 8
"""At least, of blocks that take no less than `SHORTEST_BLOCK`."""


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


class Estimates:
    """Seconds of cells.

    A cell that some class has measured takes what it took there. Another one takes what its work says,
    times the median of what the measured ones on such a device took over what their work says.
    """

    def __init__(self, measured: Iterable[tuple[SweepCell, float]], budget: float) -> None:
        self._budget = budget
        self._known: dict[Case, float] = {}
        ratios: dict[str, list[float]] = {}
        for cell, seconds in measured:
            self._known[cell.case] = max(seconds, self._known.get(cell.case, 0.0))
            ratios.setdefault(cell.case.device_kind, []).append(seconds / by_work(cell, budget))
        self._correction = {kind: statistics.median(found) for kind, found in ratios.items()}

    def seconds(self, cell: SweepCell) -> float:
        if cell.case in self._known:
            return self._known[cell.case]
        return by_work(cell, self._budget) * self._correction.get(cell.case.device_kind, 1.0)

    def is_measured(self, cell: SweepCell) -> bool:
        return cell.case in self._known


def by_work(cell: SweepCell, budget: float) -> float:
    """The seconds that follow from a cell's floating-point operations."""
    case = cell.case
    strategies = len(registry.distinct(operations.get(case.operation).stem))
    call = _flops(case) / _FLOPS_A_SECOND[case.device_kind]
    rounds = max(budget, _ROUNDS * strategies * SHORTEST_BLOCK)
    timed = len(cell.objectives) * (_CALLS_TIMED * call + rounds)
    return _START + _exact(case) + _CALLS_ALONE * call + timed


def _flops(case: Case) -> float:
    """Of forward and backward by an SVD, or by PyTorch, whose backward squares the longer side."""
    small, large = sorted(case.shape)
    one = 2 * svd_flops(small, large)
    is_thin = operations.get(case.operation).truncates and small < large
    if is_thin and (case.device_kind != "cpu" or is_affordable(case, BASELINE)):
        one += 8 * large**2 * small
    return one * max(case.batch, 1) * (4 if case.dtype.is_complex else 1)


def _exact(case: Case) -> float:
    """Seconds for the exact gradient that errors are taken from."""
    work = math.prod(case.shape) * min(case.shape)
    if work > LARGEST_EXACT:
        return 0.0
    matrices = min(max(case.batch, 1), CHECKED)
    return matrices * (4 if case.dtype.is_complex else 1) * work / LARGEST_EXACT


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
