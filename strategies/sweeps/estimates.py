"""How long the cells of a sweep take: as measured where that is known, else by the work they are."""

import math
import statistics
from collections.abc import Iterable

from strategies import operations, registry
from strategies.measuring.case import Case
from strategies.measuring.clock import SHORTEST_BLOCK
from strategies.measuring.errors import CHECKED, LARGEST_EXACT
from strategies.measuring.work import svd_flops
from strategies.measuring.workload import is_affordable
from strategies.policy import BASELINE
from strategies.sweeps.cells import SweepCell

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
