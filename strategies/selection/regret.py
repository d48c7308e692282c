"""How good a policy is on cases that were not measured when it was made.

The regret of a choice is its time over that of the fastest eligible strategy. The fastest of seven
medians is also the luckiest: a ratio to it would be too large even for a perfect choice. So half of
the rounds say which strategy is the fastest, and the other half what the choice takes over it;
then the halves change places, and the geometric mean of both counts. No measurement judges
itself, and the pairs are of one round each. A choice that is not eligible has infinite regret.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from strategies.policy import BASELINE, Policy
from strategies.selection.held_out import ratio
from strategies.selection.rows import CELL, tidy
from strategies.selection.verdicts import Criteria, Objective, Verdict, error_limit, judge

SEVERITIES = {"mild": 1.2, "moderate": 2.0, "severe": math.inf}
"""The regret up to which a wrong choice is called so."""

RIGHT_UP_TO = 1.05
"""A choice with a regret of up to this is right: timings repeat no better."""

SLOWER = 1.1
"""What takes this much longer than native counts as slower, if that is no noise."""

Entry = Mapping[str, Any]
"""A strategy's measurements in one case, as `held_out.measure` gives them."""


def score(measured: Sequence[Entry], policy: dict[str, Any], names: Sequence[str]) -> pd.DataFrame:
    """Compares what a policy would have used in every case with all that could have been used.

    Args:
        measured: cases as `held_out.measure` gives them.
        policy: a policy file's content.
        names: the strategies, simplest first.

    Returns:
        A row a case and choice, with the columns

        * case, operation, choice (a strategy's name, "policy" or "single default"), strategy;
        * regret, infinite where it is not eligible, and regret_low, the lower end of a 95 %
            interval of its time over the fastest's;
        * over_native, how many times faster than native it is, over_native_low and _high; missing
            where either did not run;
        * native: why native is not eligible, else empty.

        Cases for which no strategy is eligible are left out.
    """
    asked = policy["criteria"]
    criteria = Criteria(Objective(asked["objective"]), asked["accuracy"], asked["memory_bytes"])
    choices = Policy(policy)
    records: list[dict[str, Any]] = []
    for case in measured:
        records += _score_one(case, policy, choices, names, criteria)
    columns = ["case", "operation", "choice", "strategy", "regret", "regret_low", "over_native"]
    columns += ["over_native_low", "over_native_high", "native"]
    return pd.DataFrame.from_records(records, columns=columns)


def regrets(entries: Mapping[str, Entry], eligible: Sequence[str]) -> dict[str, float]:
    """The regret of every eligible strategy in one case.

    Args:
        entries: by name, what was measured.
        eligible: at least one of the names.

    Example:
        >>> entries = {"a": {"screened": 2.0, "rounds": [2.0, 2.0, 2.1, 2.1]},
        ...            "b": {"screened": 1.0, "rounds": [1.0, 1.0, 1.0, 1.0]}}
        >>> {name: round(regret, 2) for name, regret in regrets(entries, ["a", "b"]).items()}
        {'a': 2.05, 'b': 1.0}
    """
    halves = [{name: _half(entries[name], which) for name in eligible} for which in (0, 1)]
    product = dict.fromkeys(eligible, 1.0)
    for judging, judged in (halves, halves[::-1]):
        fastest = min(eligible, key=lambda name: _cost(judging[name]))
        for name in eligible:
            product[name] *= ratio(judged[name], judged[fastest])[0]
    # A choice can look better than the best by noise alone.
    return {name: max(1.0, math.sqrt(value)) for name, value in product.items()}


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """What every choice is worth over all cases.

    Returns:
        By choice: cases; the median, p95 and worst regret; eligible, the share of cases it is
        eligible in; over_native, the geometric mean of its speed over native's, where both ran.
    """
    grouped = scores.groupby("choice", sort=False)
    regret = grouped["regret"]
    # An infinite neighbour must not turn a quantile into NaN: take the next value, no mean.
    return pd.DataFrame(
        {
            "cases": regret.size(),
            "median": regret.quantile(0.5, interpolation="higher"),
            "p95": regret.quantile(0.95, interpolation="higher"),
            "worst": regret.max(),
            "eligible": regret.agg(lambda values: np.isfinite(values).mean()),
            "over_native": grouped["over_native"].agg(
                lambda ratios: math.exp(np.log(ratios.dropna()).mean())
            ),
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


def slower_than_native(scores: pd.DataFrame, choice: str = "policy") -> pd.DataFrame:
    """The cases in which a choice is slower than native by more than `SLOWER`, slowest first.

    Those whose interval reaches up to native's speed are left out: that may be noise.
    """
    slower = scores["over_native"].lt(1 / SLOWER) & scores["over_native_high"].lt(1)
    return scores[scores["choice"].eq(choice) & slower].sort_values("over_native")


def _half(entry: Entry, which: int) -> Entry:
    """Every other pair of rounds: one of a pair goes through the strategies backwards."""
    rounds = [cost for index, cost in enumerate(entry["rounds"]) if index // 2 % 2 == which]
    return {"screened": entry["screened"], "rounds": rounds}


def _cost(entry: Entry) -> float:
    return float(statistics.median(entry["rounds"] or [entry["screened"]]))


def _score_one(
    case: Entry, policy: dict[str, Any], choices: Policy, names: Sequence[str], criteria: Criteria
) -> list[dict[str, Any]]:
    operation, dtype = case["operation"], case["dtype"]
    entry = policy["operations"].get(operation, {"default": {}, "unstable": {}})
    unstable = {
        (operation, dtype, name): why for name, why in entry["unstable"].get(dtype, {}).items()
    }
    entries = {strategy["strategy"]: strategy for strategy in case["strategies"]}
    # What was timed is judged at its own condition number, unlike what was measured for its error.
    sizes = {name: case[name] for name in CELL if name not in ("log10_cond", "matrix")}
    rows = tidy(pd.DataFrame.from_records(case["strategies"]).assign(**sizes))
    if criteria.accuracy is None:
        log10_cond = 1.0 if case["log10_cond"] is None else case["log10_cond"]
        criteria = replace(criteria, accuracy=error_limit(rows, log10_cond))
    judged = judge(rows, names, criteria, unstable).set_index("strategy")
    eligible = [str(name) for name in judged.index[judged["verdict"] != Verdict.INELIGIBLE]]
    if not eligible:
        return []
    regret = regrets(entries, eligible)
    fastest = entries[min(eligible, key=regret.__getitem__)]
    picked = _what_auto_does(case, entries, choices)
    regime = "full_rank" if case["rank"] is None else "any_rank"
    single = entry["default"].get(regime, {}).get("strategy", BASELINE)
    records = []
    for choice, strategy in {
        "policy": picked,
        "single default": single,
        **{n: n for n in names},
    }.items():
        ran = strategy in entries and entries[strategy]["status"] == "ok"
        native = ran and entries[BASELINE]["status"] == "ok"
        over = ratio(entries[BASELINE], entries[strategy]) if native else (math.nan,) * 3
        records.append(
            {
                "case": case["label"],
                "operation": operation,
                "choice": choice,
                "strategy": strategy,
                "regret": regret.get(strategy, math.inf),
                "regret_low": ratio(entries[strategy], fastest)[1] if ran else math.nan,
                **dict(
                    zip(("over_native", "over_native_low", "over_native_high"), over, strict=True)
                ),
                "native": judged.loc[BASELINE, "reason"],
            }
        )
    return records


def _what_auto_does(case: Entry, entries: Mapping[str, Entry], choices: Policy) -> str:
    """The first of the policy's candidates that does not refuse the case; else the last."""
    names = [
        strategy.name
        for strategy in choices.candidates(
            case["operation"],
            *(case["m"], case["n"], case["rhs"], case["batch"], case["dtype"], case["device"]),
        )
    ]
    return next((name for name in names if entries[name]["status"] != "n/a"), names[-1])
