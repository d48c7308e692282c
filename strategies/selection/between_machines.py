"""Several machines in the same cases: wins and losses, where they disagree, how far a verdict carries."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from strategies.measuring import Case, Cell, Machine, Objective, Run
from strategies.policy import BASELINE
from strategies.policy.nearest_machine import minor
from strategies.policy.schema import Policy
from strategies.selection import policies, regret
from strategies.selection.eligibility import Criteria
from strategies.selection.regret import Score
from strategies.selection.text import number
from strategies.selection.verdicts import RESOLUTION, JudgedCell, Verdict

Places = Mapping[str, Mapping[Case, JudgedCell]]
"""By the name of a machine, what was measured there."""


class Against(StrEnum):
    """What the strategy to use is worth against native in one case, by a 95 % interval of the ratio."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNDECIDED = "undecided"
    ALONE = "native did not run"
    NONE = "none may be used"


def against_native(
    cell: JudgedCell, objective: Objective
) -> tuple[Against, tuple[float, float, float]]:
    """The verdict on the strategy to use, and how many times faster than native it is.

    It is faster or slower if all of the interval is, by more than what timings resolve; the same if all
    of it is within that; and else undecided.
    """
    name = cell.chosen.strategy if cell.chosen else ""
    ratio, low, high = cell.cell.speedup(BASELINE, name, objective)
    verdicts = {
        Against.NONE: not name,
        Against.ALONE: not ratio > 0,
        Against.FASTER: low > RESOLUTION,
        Against.SLOWER: high < 1 / RESOLUTION,
        Against.SAME: low >= 1 / RESOLUTION and high <= RESOLUTION,
        Against.UNDECIDED: True,
    }
    return next(found for found, holds in verdicts.items() if holds), (ratio, low, high)


def is_native_stable(cell: JudgedCell) -> bool:
    """Whether native may be used there at all."""
    native = cell.get(BASELINE)
    return native is not None and native.is_eligible


def by_machine(cells: Sequence[JudgedCell]) -> dict[str, dict[Case, JudgedCell]]:
    """The cells by the name of their machine, and by case."""
    found: dict[str, dict[Case, JudgedCell]] = {}
    for cell in cells:
        found.setdefault(cell.machine.name, {})[cell.case] = cell
    return found


@dataclass(frozen=True)
class Flip:
    """A case in which two machines use different strategies, each told apart from the other's there."""

    one: JudgedCell
    other: JudgedCell
    costs: tuple[float, float]
    """What the second's choice takes on the first over the fastest there, and the reverse."""

    @property
    def case(self) -> Case:
        return self.one.case


def flips(one: Mapping[Case, JudgedCell], other: Mapping[Case, JudgedCell]) -> Iterator[Flip]:
    """The flips between two machines. Where another's choice is a tie, or may not be used, is none."""
    for case in (case for case in one if case in other):
        mine, its = one[case], other[case]
        if mine.chosen is None or its.chosen is None:
            continue
        crossed = mine.get(its.chosen.strategy), its.get(mine.chosen.strategy)
        ratios = [each.ratio for each in crossed if each and each.verdict is Verdict.SLOWER]
        if len(ratios) == 2:
            yield Flip(mine, its, (ratios[0], ratios[1]))


def differing(one: Machine, other: Machine) -> str:
    """In what two machines differ, in words; of versions major and minor.

    Example:
        >>> differing(Machine("a", threads=2, torch="2.13.0"), Machine("b", threads=1, torch="2.9.1"))
        '2 against 1 threads, torch 2.13 against 2.9'
    """
    models = ("cpu", "gpu", "instruction_set")
    pairs = [
        *(("{} against {}", getattr(one, name), getattr(other, name)) for name in models),
        ("{} against {} threads", one.threads, other.threads),
        ("torch {} against {}", minor(one.torch), minor(other.torch)),
        ("BLAS {} against {}", one.blas, other.blas),
    ]
    # What an older file does not say is not known to differ.
    words = [text.format(mine, its) for text, mine, its in pairs if mine and its and mine != its]
    return ", ".join(words) or "nothing that is known"


@dataclass(frozen=True)
class Carried:
    """What the policy of one machine is worth by the times of another, as scores of its choices."""

    policy_of: str
    measured_on: str
    scores: tuple[Score, ...]

    @property
    def is_elsewhere(self) -> bool:
        return self.policy_of != self.measured_on

    @property
    def summary(self) -> regret.Summary:
        return regret.summaries(self.scores)[0]

    @property
    def slower(self) -> list[Score]:
        """Where it is slower than native beyond doubt, slowest first."""
        return regret.slower_than_native(self.scores)


def carried(runs: Sequence[Run], places: Places, criteria: Criteria) -> list[Carried]:
    """What the policy of every machine is worth on every machine, by the paired times there.

    The policy of a machine is built from its own cells; on the machine itself it is thus judged by what
    it was made of.
    """
    cells = {name: [each.cell for each in of.values()] for name, of in places.items()}
    pairs = [(one, other) for one in places for other in places]
    return _carried(runs, cells, pairs, criteria)


def drawn(runs: Sequence[Run], places: Places, criteria: Criteria) -> list[Carried]:
    """What the policy of a machine is worth there in cases drawn at random, where some were measured."""
    found: dict[str, list[Cell]] = {}
    for run in runs:
        timed = [cell for cell in run.cells if cell.costs(criteria.objective)]
        if run.kind == "draw" and run.machine.name in places and timed:
            found.setdefault(run.machine.name, []).extend(timed)
    return _carried(runs, found, ((name, name) for name in places if name in found), criteria)


def _carried(
    runs: Sequence[Run],
    cells: Mapping[str, Sequence[Cell]],
    pairs: Iterable[tuple[str, str]],
    criteria: Criteria,
) -> list[Carried]:
    """What the policies of machines, built from each by itself, are worth in cells of others."""

    @functools.cache
    def policy_of(name: str) -> Policy:
        own = [run for run in runs if run.kind == "stability" or run.machine.name == name]
        return policies.build(own, criteria)

    return [
        Carried(one, other, tuple(regret.of_policy(regret.score(cells[other], policy_of(one)))))
        for one, other in pairs
    ]


def interval(found: tuple[float, float, float]) -> str:
    """A ratio with the ends of its interval, as "1.20 (1.10 to 1.31)"."""
    ratio, low, high = found
    return f"{number(ratio, '.2f')} ({number(low, '.2f')} to {number(high, '.2f')})"
