"""How good a policy is on cases that were not measured when it was made.

The regret of a choice is its time over that of the fastest eligible strategy; infinite if not eligible.
The fastest of several medians is partly lucky: a ratio to it would be too large even for a perfect choice.
So half of the rounds say which strategy is the fastest, and the other half what the choice takes over it;
then the halves change places, and the geometric mean of both counts.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from strategies import operations
from strategies.measuring import Case, Cell, Machine, Status, Timing
from strategies.policy import BASELINE, ranked
from strategies.policy.schema import Policy
from strategies.selection.eligibility import Criteria
from strategies.selection.policies import policy_key
from strategies.selection.stability import evidence_in
from strategies.selection.verdicts import judge_cell

POLICY, SINGLE_DEFAULT = "policy", "single default"
"""What is scored beside every strategy by its name."""

SEVERITIES = {"mild": 1.2, "moderate": 2.0, "severe": math.inf}
"""The regret up to which a wrong choice is called so."""

RIGHT_UP_TO = 1.05
"""A choice with a regret of up to this is right: timings repeat no better."""

SLOWER = 1.1
"""What takes this much longer than native counts as slower, if that is no noise."""


@dataclass(frozen=True)
class Score:
    """What one choice, a strategy's name, `POLICY` or `SINGLE_DEFAULT`, is worth in one case.

    Attributes:
        strategy: the one that it means here.
        regret_low: lower end of a 95 % interval of its time over the fastest's; NaN where it did not run.
        over_native: how many times faster than native it is, with the ends of a 95 % interval; NaN
            where either did not run.
        native: why native is not eligible, else empty.
    """

    case: Case
    choice: str
    strategy: str
    regret: float
    regret_low: float
    over_native: tuple[float, float, float]
    native: str

    @property
    def severity(self) -> str:
        if math.isinf(self.regret):
            return "ineligible"
        return next(name for name, limit in SEVERITIES.items() if self.regret < limit)


@dataclass(frozen=True)
class Summary:
    """What one choice is worth over all cases: its regret, and the share in which it is eligible.

    Means are geometric ones; that of the speed over native's is over the cases where both ran.
    """

    choice: str
    cases: int
    median: float
    mean: float
    p95: float
    worst: float
    eligible: float
    over_native: float


def criteria_of(policy: Policy) -> Criteria:
    """What was asked when the policy was made; ValueError where it does not say."""
    try:
        return msgspec.convert(policy.criteria, Criteria)
    except msgspec.ValidationError as error:
        raise ValueError(f"the criteria of the policy are damaged: {error}") from error


def score(cells: Iterable[Cell], policy: Policy) -> list[Score]:
    """Compares what a policy would have used in every case with all that could have been used.

    The cells are timed by the policy's objective; those without an eligible strategy are left out.
    """
    return [found for cell in cells for found in _score_one(cell, policy)]


def regrets(timings: Mapping[str, Timing]) -> dict[str, float]:
    """The regret of every strategy in one case, from the timings of the eligible ones."""
    # By each half the timing of the strategy that is the fastest in the other.
    one, other = (min(timings.values(), key=lambda each: each.halves[half]) for half in (1, 0))
    best = one.halves[0] * other.halves[1]
    # A choice can look better than the best by noise alone.
    return {name: max(1.0, math.sqrt(math.prod(t.halves) / best)) for name, t in timings.items()}


def summaries(scores: Iterable[Score]) -> list[Summary]:
    """What every choice is worth over all cases, the best first."""
    by_choice: dict[str, list[Score]] = {}
    for each in scores:
        by_choice.setdefault(each.choice, []).append(each)
    found = (_summary(choice, of) for choice, of in by_choice.items())
    return sorted(found, key=lambda summary: (summary.p95, summary.median))


def of_policy(scores: Iterable[Score]) -> list[Score]:
    """Those of the policy's choices."""
    return [each for each in scores if each.choice == POLICY]


def wrong_choices(scores: Iterable[Score]) -> list[Score]:
    """The cases in which the policy was wrong, worst first."""
    wrong = [each for each in of_policy(scores) if each.regret > RIGHT_UP_TO]
    return sorted(wrong, key=lambda each: -each.regret)


def slower_than_native(scores: Iterable[Score]) -> list[Score]:
    """The cases in which the policy is slower than native by more than `SLOWER`, slowest first.

    Those whose interval reaches up to native's speed are left out: that may be noise.
    """
    slower = (
        each
        for each in of_policy(scores)
        if each.over_native[0] < 1 / SLOWER and each.over_native[2] < 1
    )
    return sorted(slower, key=lambda each: each.over_native)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The first of ordered numbers with a share of the others before it; NaN of none.

    It is no mean of neighbours, of which one may be infinite.

    Example:
        >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5)
        3.0
    """
    return ordered[math.ceil(share * (len(ordered) - 1))] if ordered else math.nan


def _summary(choice: str, scores: Sequence[Score]) -> Summary:
    ordered = sorted(each.regret for each in scores)
    speeds = [each.over_native[0] for each in scores if not math.isnan(each.over_native[0])]
    return Summary(
        choice=choice,
        cases=len(ordered),
        median=quantile(ordered, 0.5),
        mean=statistics.geometric_mean(ordered),
        p95=quantile(ordered, 0.95),
        worst=ordered[-1],
        eligible=sum(map(math.isfinite, ordered)) / len(ordered),
        over_native=statistics.geometric_mean(speeds) if speeds else math.nan,
    )


def _score_one(cell: Cell, policy: Policy) -> Iterator[Score]:
    case, criteria = cell.case, criteria_of(policy)
    judged = judge_cell(Machine(""), cell, criteria, evidence_in(policy, case))
    costs = cell.costs(criteria.objective)
    timings = {each.strategy: costs[each.strategy] for each in judged.judged if each.is_eligible}
    if not timings:
        return
    regret = regrets(timings)
    fastest = min(regret, key=regret.__getitem__)
    known = policy.of(operations.get(case.operation).policy_operation)
    default = known.full_rank if case.rank is None else known.any_rank
    choices = {
        POLICY: choice_in(cell, policy),
        SINGLE_DEFAULT: default.strategy if default else BASELINE,
        **{each.strategy: each.strategy for each in cell},
    }
    native = judged.get(BASELINE)
    for choice, strategy in choices.items():
        yield Score(
            case=case,
            choice=choice,
            strategy=strategy,
            regret=regret.get(strategy, math.inf),
            regret_low=cell.speedup(strategy, fastest, criteria.objective)[1],
            over_native=cell.speedup(BASELINE, strategy, criteria.objective),
            native=native.reason if native else "not measured",
        )


def choice_in(cell: Cell, policy: Policy) -> str:
    """The first of the policy's candidates that does not refuse the case; else the last."""
    any_rank = operations.get(cell.case.operation).falls_back
    names = [each.name for each in ranked(policy, policy_key(cell.case), any_rank=any_rank)]
    refused = {each.strategy for each in cell if each.status is Status.NOT_APPLICABLE}
    return next((name for name in names if name not in refused), names[-1])
