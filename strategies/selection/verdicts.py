"""Which strategy to use in each case, and what that rests on.

A strategy is *eligible* if it ran and is accurate: its error is at most ten times the best in the
case, or what a stable method may have, or within the tolerance asked for, and at no condition
number that was measured does it lose digits that others keep. Of the eligible ones the fastest is
*best*. Those that cannot be told from it form a *tie*, and a tie goes to the simplest. What a
verdict rests on stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from strategies.accuracy.measures import PASS_BELOW
from strategies.policy import BASELINE
from strategies.selection.rows import CELL, UNIT_ROUNDOFF, latest

ACCURACY_FACTOR = 10.0
"""How much larger than the best error of its case an error may be."""

RESOLUTION = 1.05
"""Ratios within this of 1 are a tie. Every strategy is measured in a process of its own, and
processes differ by some percent (memory layout, clock rate), which no interval within one shows."""

LARGEST_PRICE_OF_SIMPLICITY = 1.1
"""A tie goes to a simpler strategy only if that is slower by no more than this, noise or not."""

WORST_CONDITION = 0.1
"""Beyond κ u of this, the gradient has no correct digit to compare strategies by."""

COMPARED = ["machine", *CELL]
"""Rows that agree in these are compared with each other."""


class Objective(StrEnum):
    """What is to be small."""

    BACKWARD = "backward"
    FORWARD_BACKWARD = "forward_backward"
    MEMORY = "memory"


class Verdict(StrEnum):
    """What a strategy is worth in one case."""

    BEST = "best"
    TIE = "tie"
    SLOWER = "slower"
    INELIGIBLE = "ineligible"


_SPEEDUPS = [f"speedup_over_native{end}" for end in ("", "_low", "_high")]


@dataclass(frozen=True)
class Criteria:
    """What the user asks of a strategy.

    Attributes:
        objective: what is to be small.
        accuracy: the largest relative error accepted; None stands for ten times the best.
        memory_bytes: the most memory that the backward may take above its graph.
    """

    objective: Objective = Objective.BACKWARD
    accuracy: float | None = None
    memory_bytes: float | None = None


Unstable = Mapping[tuple[str, str, str], str]
"""Why a strategy loses accuracy, by operation, dtype and its name."""


def judge(
    rows: pd.DataFrame,
    simplest_first: Sequence[str],
    criteria: Criteria = Criteria(),
    unstable: Unstable | None = None,
) -> pd.DataFrame:
    """Judges every strategy in every case, on the newest run of each machine.

    Args:
        rows: as `strategies.selection.rows.load` gives them.
        simplest_first: strategies in the order in which ties are given; `strategies.available()`.
            Others come after them, by name.
        criteria: what is asked.
        unstable: strategies to leave out; None stands for the `breakdowns` that the rows show.

    Returns:
        The rows of timed cases, each case's strategies from best to worst, with the columns

        * verdict: best, tie, slower or ineligible;
        * reason: why it is ineligible, else empty;
        * chosen: whether it is the one to use, exactly one a case that has an eligible strategy;
        * ratio, ratio_low, ratio_high: its cost over the fastest eligible one's, and an interval that
            holds the true ratio if both measured intervals hold the true costs;
        * paired: whether the ratio comes from measurements taken in turn.
    """
    rows = latest(rows[~rows["is_peer"]])
    if unstable is None:
        unstable = breakdowns(rows, criteria.accuracy)
    rank = order(simplest_first)
    timed = rows[rows["log10_cond"].isna()].copy()
    # What was measured for the baseline against itself is noise around this.
    timed.loc[timed["strategy"].eq(BASELINE) & timed["status"].eq("ok"), _SPEEDUPS] = 1.0
    judged = [
        _judge_case(case, unstable, rank, criteria)
        for _, case in timed.groupby(COMPARED, dropna=False, sort=False)
    ]
    if not judged:
        raise ValueError(
            "the results hold no timed case, only conditioning or other libraries; run the whole suite"
        )
    return pd.concat(judged, ignore_index=True)


def breakdowns(
    rows: pd.DataFrame, accuracy: float | None = None
) -> dict[tuple[str, str, str], str]:
    """The strategies that lose accuracy as conditioning worsens, and where.

    With an accuracy asked for there are none: a limit that the user sets is about their own
    matrices, and is applied to the case alone.

    A dtype without such measurements inherits from those that have them: what a strategy does with
    the condition number is in its formula, not in the precision.

    Returns:
        By (operation, dtype, strategy), the reason in words.
    """
    found: dict[tuple[str, str, str], str] = {}
    if accuracy is not None:
        return found
    conditioned = rows[rows["log10_cond"].notna() & rows["rank"].isna() & rows["matrix"].eq("")]
    for _, case in conditioned.groupby(COMPARED, dropna=False):
        first = case.iloc[0]
        attainable = 10.0 ** first["log10_cond"] * UNIT_ROUNDOFF[first["dtype"]]
        if attainable > WORST_CONDITION:
            continue
        limit = error_limit(case, first["log10_cond"])
        for strategy, status, error in zip(
            case["strategy"], case["status"], case["error"], strict=True
        ):
            key = (first["operation"], first["dtype"], strategy)
            if key not in found and status == "ok" and error > limit:
                found[key] = (
                    f"unstable: at κ = 1e{first['log10_cond']:.0f} its error is {error:.1e}, "
                    f"the best is {case['error'].min():.1e}"
                )
    measured = set(zip(conditioned["operation"], conditioned["dtype"], strict=True))
    for operation, dtype in set(zip(rows["operation"], rows["dtype"], strict=True)) - measured:
        for (other, source, strategy), why in list(found.items()):
            if other == operation:
                found.setdefault((operation, dtype, strategy), f"{why} ({source})")
    return found


def _judge_case(
    case: pd.DataFrame,
    unstable: Unstable,
    rank: Callable[[str], tuple[int, str]],
    criteria: Criteria,
) -> pd.DataFrame:
    case = case.assign(**_costs(case, criteria.objective))
    limit = criteria.accuracy if criteria.accuracy is not None else error_limit(case)
    reasons = [_why_ineligible(row, limit, unstable, criteria) for _, row in case.iterrows()]
    case["reason"] = reasons
    eligible = case["reason"] == ""
    best = case[eligible].nsmallest(1, "cost")
    if best.empty:
        relative = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), math.nan)
    else:
        fastest = best.iloc[0]
        relative = {
            "ratio": case["cost"] / fastest["cost"],
            "ratio_low": case["cost_low"] / fastest["cost_high"],
            "ratio_high": case["cost_high"] / fastest["cost_low"],
        }
    case = case.assign(**relative)
    if not best.empty:
        case.loc[best.index, ["ratio_low", "ratio_high"]] = 1.0
    same = eligible & (case["ratio_low"] <= RESOLUTION)
    verdicts = np.where(same, Verdict.TIE if same.sum() > 1 else Verdict.BEST, Verdict.SLOWER)
    case["verdict"] = np.where(eligible, verdicts, Verdict.INELIGIBLE)
    candidates = case[same & (case["ratio"] <= LARGEST_PRICE_OF_SIMPLICITY)]["strategy"]
    case["chosen"] = eligible & (case["strategy"] == min(candidates, key=rank, default=None))
    return case.sort_values(
        ["chosen", "verdict", "ratio"],
        ascending=[False, True, True],
        key=lambda column: column.map(list(Verdict).index) if column.name == "verdict" else column,
        kind="stable",
    ).drop(columns=["cost", "cost_low", "cost_high"])


def _costs(case: pd.DataFrame, objective: Objective) -> dict[str, pd.Series | bool]:
    """What each strategy costs, and the ends of its interval, in a unit common to the case.

    The backward's cost is in units of native's, since those ratios were taken in turn, unless
    some strategy that ran lacks one.
    """
    if objective is Objective.MEMORY:
        # Counted, not sampled. An exact zero would make every ratio to it infinite.
        cost = case["peak_bytes"].clip(lower=1.0)
        return {"cost": cost, "cost_low": cost, "cost_high": cost, "paired": False}
    speedups = case.loc[case["status"] == "ok", "speedup_over_native"]
    paired = objective is Objective.BACKWARD and not speedups.empty and bool(speedups.gt(0).all())
    if paired:
        cost = 1 / case["speedup_over_native"]
        low, high = 1 / case["speedup_over_native_high"], 1 / case["speedup_over_native_low"]
        # An interval that reaches down to zero excludes no slowness.
        high = high.where(high > 0, math.inf)
    else:
        column = f"{objective}_seconds"
        cost, low, high = case[column], case[f"{column}_low"], case[f"{column}_high"]
    return {
        "cost": cost,
        "cost_low": low.fillna(cost),
        "cost_high": high.fillna(cost),
        "paired": paired,
    }


def error_limit(rows: pd.DataFrame, log10_cond: float = 1.0) -> float:
    """The largest error that is accurate enough in a case.

    Ten times the best error; or `PASS_BELOW` κ u, where LAPACK's tests begin to fail, if that is
    more: among seven methods that all are as good as can be, the luckiest is no yardstick.

    Args:
        rows: the strategies of one case.
        log10_cond: its κ, 10 where times are taken.
    """
    best = float(rows.loc[rows["status"] == "ok", "error"].min())
    attainable = 10.0**log10_cond * UNIT_ROUNDOFF[rows["dtype"].iloc[0]]
    return max(ACCURACY_FACTOR * best, PASS_BELOW * attainable) if best == best else best


def _why_ineligible(row: pd.Series, limit: float, unstable: Unstable, criteria: Criteria) -> str:
    """The reason in words, or an empty string."""
    if row["status"] != "ok":
        return str(row["status"])
    if not row["cost"] > 0:
        return f"{criteria.objective} not measured"
    if row["error"] > limit:
        return f"error {row['error']:.1e} exceeds {limit:.1e}"
    # NaN as a limit: nobody's error was measured here, which counts against nobody.
    if math.isnan(row["error"]) and not math.isnan(limit):
        return "error not measured, or not a number"
    if criteria.memory_bytes is not None and not row["peak_bytes"] <= criteria.memory_bytes:
        return f"memory {row['peak_bytes']:.1e} B exceeds {criteria.memory_bytes:.1e} B"
    return unstable.get((row["operation"], row["dtype"], row["strategy"]), "")


def order(simplest_first: Sequence[str]) -> Callable[[str], tuple[int, str]]:
    """A key that sorts strategies as given, and all others by name after them."""
    ranks = {name: rank for rank, name in enumerate(simplest_first)}
    return lambda name: (ranks.get(name, len(ranks)), name)
