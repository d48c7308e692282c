"""How good the choices of "auto" are in the calls of a program."""

import math
from collections.abc import Sequence

import msgspec

from strategies import operations, policy, registry
from strategies.autograd.explanation import explain_key
from strategies.measuring import Case, Cell, Objective, measure
from strategies.policy import BASELINE
from strategies.policy.schema import Policy
from strategies.selection.eligibility import ANY, why_ineligible
from strategies.selection.policies import policy_key
from strategies.selection.regret import regrets
from strategies.selection.stability import AUTO, evidence_in

CLASSES = (1.1, 1.5)
"""The regrets that divide choices into good, tolerable and bad ones."""

_TIMED = Objective.FORWARD_BACKWARD


class Choice(msgspec.Struct, frozen=True):
    """What "auto" does in one case.

    Attributes:
        case: as `Case.parse` reads it.
        count: how often a step calls it.
        tried: what "auto" tries first, by the policy.
        fastest: of the strategies that may be used.
        regret: the time of "auto", its choosing included, over that of the fastest.
        over_torch: how many times as fast as PyTorch it is.
    """

    case: str
    count: float
    tried: str
    fastest: str
    regret: float
    over_torch: float


def choice(case: Case, count: float, budget: float) -> Choice:
    """Measures every strategy and "auto" in a case, forward and backward, in the same rounds.

    Half of the rounds say which is the fastest, the other half judge: `strategies.selection.regret`.
    """
    names = registry.distinct(operations.get(case.operation).stem)
    cell = measure(case, [*names, AUTO], objectives=[_TIMED], budget=budget)
    eligible = _eligible(cell)
    timings = {name: cost for name, cost in cell.costs(_TIMED).items() if name in eligible}
    others = timings.keys() - {AUTO} or {AUTO}
    return Choice(
        case=str(case),
        count=count,
        tried=explain_key(policy_key(case)).tried[0],
        fastest=min(others, key=lambda name: timings[name].seconds),
        regret=regrets(timings)[AUTO],
        over_torch=cell.speedup(BASELINE, AUTO, _TIMED)[0],
    )


def quantile(regrets: Sequence[float], share: float) -> float:
    """The smallest regret that a share of the choices does not exceed."""
    return sorted(regrets)[math.ceil(share * len(regrets) - 1e-9) - 1]


def _eligible(cell: Cell) -> set[str]:
    """The strategies that may be used; all, of an operation whose stability the policy does not know."""
    stability = evidence_in(Policy.read(policy.SHIPPED), cell.case)
    reasons = why_ineligible(cell, stability, ANY)
    return {AUTO} | {name for name, reason in reasons.items() if not (stability and reason)}
