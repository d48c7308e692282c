"""What to measure next, where minutes have to do for what would take hours.

First every operation and dtype is covered coarsely. From then on that case comes next where the choice
is worth most per second: with δ the logarithm of the time of a rival over that of the choice, as expected
from what was shipped and what was measured near by, and σ the doubt about δ, the choice loses on average

    E[max(−Δ, 0)] = σ φ(δ/σ) − δ Φ(−δ/σ)    for Δ ~ N(δ, σ²)

to that rival. (The expected improvement of Mockus, 1975.) It is large where strategies cross and nothing
was measured near by, and small where one is clearly the fastest, or was measured so.
"""

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist

from strategies import operations, registry
from strategies.measuring.case import Case
from strategies.policy import BASELINE
from strategies.policy.adaptation import Costs, adapt_cells
from strategies.policy.schema import Cell, Policy, answering, interpolated
from strategies.selection.policies import position_of

COVER = 4
"""Cases of every operation, dtype and kind of rank that are measured whatever is expected."""

DOUBT = 0.3
"""The standard deviation of δ where nothing was measured near: about how much another machine, or
another number of threads, changes ratios between strategies."""

NEAR = 4.0
"""Factors of two in size from which on a measurement says nothing of a case."""

CLEAR = 0.002
"""Where no case promises to lose more than this share, measuring ends."""

CONTENDERS_IN_COVER, CONTENDERS = 4.0, 1.8
"""How many times slower than the fastest a strategy may be expected to be, and yet be measured."""

_LARGEST_IN_COVER = {"cpu": 2**22, "cuda": 2**32}
"""Multiplications: some tens of milliseconds."""

_SECONDS, _SECONDS_PER_WORK = 0.2, {"cpu": 2e-8, "cuda": 1e-11}
"""About what a case takes: what is around it, and what its multiplications take."""

_NORMAL = NormalDist()

Group = tuple[str, str, str, bool]
"""Operation, kind of device, dtype, and whether ranks are deficient."""


class Plan:
    """Which case to measure next, and with which strategies.

    The shipped policy says what is expected of cases, and which strategies may be used. With
    `all_of_them` every case is measured, with native, in the order given.
    """

    def __init__(
        self, cases: Sequence[Case], shipped: Policy, *, all_of_them: bool = False
    ) -> None:
        self.shipped, self.all_of_them = shipped, all_of_them
        self._waiting: dict[Group, list[Case]] = {}
        for case in cases:
            self._waiting.setdefault(_group(case), []).append(case)
        spread = [_spread(each) for each in self._waiting.values()]
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*spread))
        self._cover = iter(cases) if all_of_them else filter(None, in_turn)
        self._measured: dict[Group, list[Cell]] = {}
        self._expected: dict[Group, dict[Case, tuple[Costs, float]]] = {}

    def next(self) -> Case | None:
        """The case to measure now; None where all is clear."""
        for case in self._cover:
            if case in self._waiting[_group(case)]:
                return case
        if self.all_of_them:
            return None
        worth = ((self._loss(case), case) for case in itertools.chain(*self._waiting.values()))
        promising = [(loss / _cost(case), case) for loss, case in worth if loss > CLEAR]
        return max(promising, key=lambda found: found[0], default=(0.0, None))[1]

    def contenders(self, case: Case) -> list[str]:
        """The strategies to measure in a case, the one that the shipped policy would use first."""
        allowed = self._allowed(case)
        if self.all_of_them:
            return list(dict.fromkeys((BASELINE, *allowed)))
        costs = {name: cost for name, cost in self._expectation(case)[0].items() if name in allowed}
        if not costs:
            return allowed
        is_known = len(self._measured.get(_group(case), ())) >= COVER
        limit = math.log(CONTENDERS if is_known else CONTENDERS_IN_COVER) + min(costs.values())
        before = shipped_costs(self.shipped, case)
        known = (name for name in before if name in allowed)
        chosen = min(known, key=before.__getitem__, default="")
        order = sorted(costs, key=costs.__getitem__)
        # A single one would be timed against nothing.
        near = [name for i, name in enumerate(order) if i < 2 or costs[name] <= limit]
        return list(dict.fromkeys(filter(None, (chosen, *near))))

    def add(self, case: Case, cell: Cell | None) -> None:
        """Takes in what was measured; None where no strategy could."""
        group = _group(case)
        self._waiting[group] = [each for each in self._waiting.get(group, ()) if each != case]
        if cell is not None:
            self._measured.setdefault(group, []).append(cell)
            self._expected.pop(group, None)

    def _allowed(self, case: Case) -> list[str]:
        record = operations.get(case.operation)
        entry = self.shipped.operations.get(record.policy_operation)
        names = registry.distinct(record.stem)
        return [name for name in names if entry is not None and entry.allows(name)]

    def _loss(self, case: Case) -> float:
        """What the choice in a case is expected to lose, as a share of its time."""
        costs, distance = self._expectation(case)
        if not costs:
            return DOUBT
        doubt = DOUBT * min(1.0, distance / NEAR)
        best, *rivals = sorted(costs.values())
        return max((_expected_loss(rival - best, doubt) for rival in rivals), default=0.0)

    def _expectation(self, case: Case) -> tuple[Costs, float]:
        """The expected times of the strategies, and how far the nearest measured case is."""
        group = _group(case)
        if group not in self._expected:
            measured = self._measured.get(group, [])
            cells = adapt_cells(_begun(self.shipped, case), measured)
            self._expected[group] = {}
            for each in self._waiting[group]:
                place = position_of(each)
                nearest = min((math.dist(m.position, place) for m in measured), default=math.inf)
                self._expected[group][each] = interpolated(cells, place), nearest
        return self._expected[group][case]


def shipped_costs(shipped: Policy, case: Case) -> Costs:
    """What the shipped policy expects of a case."""
    return interpolated(_begun(shipped, case), position_of(case))


def _begun(shipped: Policy, case: Case) -> list[Cell]:
    known = shipped.of(operations.get(case.operation).policy_operation)
    by_dtype = known.cells.get(case.device_kind, {})
    return answering(by_dtype, case.dtype_name, case.rank is not None)


def _expected_loss(margin: float, doubt: float) -> float:
    if doubt == 0.0:
        return 0.0
    z = margin / doubt
    return doubt * _NORMAL.pdf(z) - margin * _NORMAL.cdf(-z)


def _spread(cases: Sequence[Case]) -> list[Case]:
    """A few cases that lie far from each other, the one in the middle first."""
    largest = _LARGEST_IN_COVER[cases[0].device_kind]
    left = [case for case in cases if case.work <= largest] or list(cases)
    middle = tuple(sum(axis) / len(left) for axis in zip(*map(position_of, left), strict=True))
    found = [min(left, key=lambda case: math.dist(position_of(case), middle))]

    def distance(case: Case) -> float:
        return min(math.dist(position_of(case), position_of(other)) for other in found)

    while len(found) < min(COVER, len(left)):
        found.append(max(left, key=distance))
    return found


def _group(case: Case) -> Group:
    return case.operation, case.device_kind, case.dtype_name, case.rank is not None


def _cost(case: Case) -> float:
    return _SECONDS + _SECONDS_PER_WORK[case.device_kind] * case.work
