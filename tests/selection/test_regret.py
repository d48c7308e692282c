import math
import random

import pandas as pd
import pytest

from strategies.selection import regret
from strategies.selection.policy_building import build
from strategies.selection.verdicts import Criteria

ORDER = ("native", "triangular_solve", "qr_pinv")


def measured(*, rank=None, operation="pinv", **seconds):
    """A case as held_out gives it; a strategy without seconds refused it."""
    strategies = []
    for name in ORDER:
        rounds = seconds.get(name)
        if rounds is None:
            strategies.append({"strategy": name, "status": "n/a"})
            continue
        rounds = rounds if isinstance(rounds, list) else [rounds] * 12
        cost = {"screened": rounds[0], "rounds": rounds, "backward_seconds": rounds[0]}
        strategies.append(
            {"strategy": name, "status": "ok", "error": 1e-15, "peak_bytes": 8.0} | cost
        )
    sizes = {"operation": operation, "m": 64, "n": 8, "rhs": 1, "batch": 0, "rank": rank}
    where = {"log10_cond": None, "dtype": "float64", "device": "cpu", "label": "a case", "seed": 0}
    return {**sizes, **where, "strategies": strategies}


@pytest.fixture
def says_native(rows_of, at_speed):
    """A policy that has found native to be the fastest at full rank."""
    full = rows_of(at_speed("native", 1), at_speed("qr_pinv", 0.5))
    return build(full, ORDER, Criteria())


@pytest.fixture
def scored(says_native):
    return regret.score([measured(native=4.0, qr_pinv=1.0)] * 2, says_native, ORDER)


def test_regret_is_the_time_over_the_fastest(scored):
    by_choice = scored.groupby("choice")["regret"].max()
    assert by_choice["policy"] == by_choice["native"] == by_choice["single default"] == 4
    assert by_choice["qr_pinv"] == 1
    assert by_choice["triangular_solve"] == math.inf


def test_the_summary_ranks_choices(scored):
    summary = regret.summary(scored)
    assert summary.index[0] == "qr_pinv"
    assert summary.loc["triangular_solve", "eligible"] == 0
    assert summary.loc["policy", "cases"] == 2
    assert summary.loc["qr_pinv", "over_native"] == pytest.approx(4)
    assert summary.loc["policy", "over_native"] == pytest.approx(1)


def test_equal_strategies_have_no_regret_for_all_their_noise():
    noise = random.Random(0)  # noqa: S311 - no secret
    mean = 0.0
    for _ in range(200):
        names = [f"s{i}" for i in range(7)]
        entries = {
            name: {"screened": 1.0, "rounds": [noise.lognormvariate(0, 0.1) for _ in range(24)]}
            for name in names
        }
        product = regret.regrets(entries, names)["s0"]
        mean += math.log(product) / 200
    # The ratio of two medians over the fastest of seven would be 4 % too large.
    assert mean < 0.02


def test_what_is_not_accurate_is_infinitely_regretted(says_native):
    case = measured(native=4.0, qr_pinv=1.0)
    case["strategies"][2]["error"] = 1e-3
    scores = regret.score([case], says_native, ORDER).set_index("choice")
    assert scores.loc["qr_pinv", "regret"] == math.inf
    assert scores.loc["native", "regret"] == 1


def test_where_auto_is_refused_the_rank_its_next_candidate_counts(rows_of, at_speed):
    full = rows_of(at_speed("native", 1), at_speed("triangular_solve", 4))
    deficient = rows_of(at_speed("native", 1), at_speed("qr_pinv", 3), rank=4)
    policy = build(pd.concat([full, deficient], ignore_index=True), ORDER, Criteria())
    scores = regret.score([measured(rank=4, native=2.0, qr_pinv=1.0)], policy, ORDER)
    assert scores.set_index("choice").loc["policy", "strategy"] == "qr_pinv"


def test_what_is_slower_than_native_is_listed_unless_it_may_be_noise(rows_of, at_speed):
    policy = build(rows_of(at_speed("native", 1), at_speed("qr_pinv", 4)), ORDER, Criteria())
    noisy = [1.3, 0.7, 1.4, 1.3, 0.6, 1.5, 1.3, 0.8, 1.3, 0.9, 1.2, 1.2]
    cases = [
        measured(native=1.0, qr_pinv=1.05),
        measured(native=1.0, qr_pinv=1.5),
        measured(native=1.0, qr_pinv=noisy),
    ]
    slower = regret.slower_than_native(regret.score(cases, policy, ORDER))
    assert list(1 / slower["over_native"]) == [pytest.approx(1.5)]


def test_a_case_without_an_eligible_strategy_is_left_out(says_native):
    assert regret.score([measured()], says_native, ORDER).empty


def test_wrong_choices_are_listed_with_severity(scored):
    wrong = regret.wrong_choices(scored)
    assert list(wrong["severity"]) == ["severe", "severe"]
    assert list(wrong["regret_low"]) == [4, 4]
    assert regret.wrong_choices(scored, "qr_pinv").empty


@pytest.mark.parametrize(
    ("value", "severity"),
    [(1.1, "mild"), (1.2, "moderate"), (2.0, "severe"), (math.inf, "ineligible")],
)
def test_severity_grows_with_regret(value, severity):
    scores = pd.DataFrame(
        [{"case": "c", "operation": "inv", "choice": "policy", "strategy": "s", "regret": value}]
    )
    assert regret.wrong_choices(scores)["severity"].item() == severity
