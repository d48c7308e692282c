"""How good a policy is on cases that were not measured when it was made.

The regret of a choice is the time of the chosen strategy over that of the fastest eligible one,
both timed in turn with a common partner. A choice that is not eligible has infinite regret.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from strategies.measuring import Case
from strategies.measuring.case import SQUARE_ONLY, WITH_RIGHT_HAND_SIDE
from strategies.policy import BASELINE, Policy
from strategies.selection.on_the_spot import measure
from strategies.selection.rows import UNIT_ROUNDOFF
from strategies.selection.verdicts import Criteria, Objective, Verdict, judge

SEVERITIES = {"mild": 1.2, "moderate": 2.0, "severe": math.inf}
"""The regret up to which a wrong choice is called so."""

RIGHT_UP_TO = 1.05
"""A choice with a regret of up to this is right: timings repeat no better."""

SIDES = (3, 1024)
BATCHES = (2, 20_000)
LARGEST_WORK = 2**27
"""The most multiplications m n min(m, n) · batch in a case: a second's work for a slow strategy."""

LARGEST_INPUT = 2**22
"""The most entries in a case."""


def draw_cases(
    count: int, operations: Sequence[str], dtypes: Sequence[str], device: str, seed: int
) -> list[Case]:
    """Cases that no grid holds: sides, batches and condition numbers drawn log-uniformly.

    Half are single matrices. Condition numbers go up to 0.01/u; one in eight pinv and lstsq cases
    has deficient rank instead. Cases too large to be measured in seconds are drawn again.

    Example:
        >>> [case.label for case in draw_cases(2, ["inv"], ["float64"], "cpu", seed=1)] == [
        ...     case.label for case in draw_cases(2, ["inv"], ["float64"], "cpu", seed=1)]
        True
    """
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < count:
        # Operations in turn, so that each has its share however few cases are drawn.
        case = _draw(rng, operations[len(cases) % len(operations)], dtypes, device)
        m, n = case.shape
        entries = m * n * max(case.batch, 1)
        if entries * min(m, n) <= LARGEST_WORK and entries <= LARGEST_INPUT:
            cases.append(case)
    return cases


def score(
    cases: Sequence[Case],
    policy: dict[str, Any],
    names: Sequence[str],
    *,
    budget: float = 0.3,
    measured: Callable[[Case], None] | None = None,
) -> pd.DataFrame:
    """Runs every strategy on every case and compares with what the policy would have used.

    Args:
        cases: held-out cases.
        policy: a policy file's content.
        names: the strategies, simplest first.
        budget: seconds for each strategy in each case.
        measured: called after every case.

    Returns:
        A row a case and choice, with columns case, operation, choice (a strategy's name,
        "policy" or "single default"), strategy and regret (infinite where it is not eligible).
        Cases for which no strategy is eligible are left out.
    """
    records: list[dict[str, Any]] = []
    for case in cases:
        records += _score_one(case, policy, names, budget)
        if measured is not None:
            measured(case)
    columns = ["case", "operation", "choice", "strategy", "regret"]
    return pd.DataFrame.from_records(records, columns=columns)


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """Of every choice: median, p95 and worst regret, and the share of cases it is eligible in."""
    grouped = scores.groupby("choice", sort=False)["regret"]
    # An infinite neighbour must not turn a quantile into NaN: take the next value, no mean.
    return pd.DataFrame(
        {
            "cases": grouped.size(),
            "median": grouped.quantile(0.5, interpolation="higher"),
            "p95": grouped.quantile(0.95, interpolation="higher"),
            "worst": grouped.max(),
            "eligible": grouped.agg(lambda regret: np.isfinite(regret).mean()),
        }
    ).sort_values(["p95", "median"], kind="stable")


def wrong_choices(scores: pd.DataFrame, choice: str = "policy") -> pd.DataFrame:
    """The cases in which a choice was wrong, worst first, with the column `severity`."""
    wrong = scores[scores["choice"].eq(choice) & scores["regret"].gt(RIGHT_UP_TO)]
    severity = [
        "ineligible"
        if math.isinf(regret)
        else next(name for name, limit in SEVERITIES.items() if regret < limit)
        for regret in wrong["regret"]
    ]
    return wrong.assign(severity=severity).sort_values("regret", ascending=False)


def _draw(rng: np.random.Generator, operation: str, dtypes: Sequence[str], device: str) -> Case:
    m = _log_uniform(rng, SIDES)
    n = m if operation in SQUARE_ONLY or rng.random() < 0.3 else _log_uniform(rng, SIDES)
    if operation in WITH_RIGHT_HAND_SIDE or operation == "pinv":
        # Tall is what they are for.
        m, n = max(m, n), min(m, n)
    dtype = str(rng.choice(list(dtypes)))
    batch = 0 if rng.random() < 0.5 else _log_uniform(rng, BATCHES)
    rhs = _log_uniform(rng, (1, 32)) if operation in WITH_RIGHT_HAND_SIDE else 1
    deficient = operation in ("pinv", "lstsq") and rng.random() < 1 / 8
    return Case(
        operation,
        (m, n),
        batch,
        getattr(torch, dtype),
        device,
        rhs=rhs,
        log10_cond=None if deficient else rng.uniform(0.3, -math.log10(UNIT_ROUNDOFF[dtype]) - 2),
        rank=max(1, min(m, n) // 2) if deficient else None,
        seed=int(rng.integers(2**31)),
    )


def _log_uniform(rng: np.random.Generator, ends: tuple[int, int]) -> int:
    low, high = np.log(ends)
    return round(math.exp(rng.uniform(low, high)))


def _score_one(
    case: Case, policy: dict[str, Any], names: Sequence[str], budget: float
) -> Iterator[dict[str, Any]]:
    asked = policy["criteria"]
    criteria = Criteria(Objective(asked["objective"]), asked["accuracy"], asked["memory_bytes"])
    entry = policy["operations"].get(case.operation, {"default": {}, "unstable": {}})
    dtype = str(case.dtype).removeprefix("torch.")
    unstable = {
        (case.operation, dtype, name): why for name, why in entry["unstable"].get(dtype, {}).items()
    }
    both = criteria.objective is Objective.FORWARD_BACKWARD
    rows = measure(case, names, budget=budget, forward_too=both)
    judged = judge(rows, names, criteria, unstable)
    if not judged["chosen"].any():
        return
    regrets = dict.fromkeys(names, math.inf)
    eligible = judged[judged["verdict"] != Verdict.INELIGIBLE]
    regrets.update(zip(eligible["strategy"], eligible["ratio"], strict=True))
    regime = "full_rank" if case.rank is None else "any_rank"
    single = entry["default"].get(regime, {}).get("strategy", BASELINE)
    picked = Policy(policy).pick(
        case.operation,
        *case.shape,
        rhs=case.rhs,
        batch=case.batch,
        dtype=dtype,
        device=case.device,
        rank="full_rank" if case.rank is None else "rank_deficient",
    )
    choices = {"policy": picked, "single default": single, **{name: name for name in names}}
    for choice, strategy in choices.items():
        yield {
            "case": case.label,
            "operation": case.operation,
            "choice": choice,
            "strategy": strategy,
            "regret": regrets.get(strategy, math.inf),
        }
