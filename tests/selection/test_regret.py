import math

import pandas as pd
import pytest

from strategies.measuring import Case
from strategies.selection import regret
from strategies.selection.policy_building import build
from strategies.selection.verdicts import Criteria


def test_the_same_seed_draws_the_same_cases():
    drawn = [
        regret.draw_cases(20, ["pinv", "solve"], ["float64", "float32"], "cpu", seed)
        for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_every_operation_has_its_share_and_no_case_is_too_large():
    cases = regret.draw_cases(60, ["lu_factor", "lstsq", "det"], ["float64"], "cpu", 0)
    counts = [sum(case.operation == op for case in cases) for op in ("lu_factor", "lstsq", "det")]
    assert counts == [20, 20, 20]
    for case in cases:
        work = math.prod(case.shape) * min(case.shape) * max(case.batch, 1)
        assert work <= regret.LARGEST_WORK


def test_some_cases_are_batches_some_deficient_some_ill_conditioned():
    cases = regret.draw_cases(100, ["pinv"], ["float64"], "cpu", 0)
    assert 30 < sum(case.batch > 0 for case in cases) < 70
    assert any(case.rank is not None for case in cases)
    assert max(case.log10_cond or 0 for case in cases) > 10


@pytest.fixture
def scored(monkeypatch, rows_of, at_speed):
    """Scores of a policy that always says native, where qr_pinv is four times as fast."""
    order = ("native", "triangular_solve", "qr_pinv")
    learned = rows_of(at_speed("native", 1), at_speed("qr_pinv", 0.5))
    policy = build(learned, order, Criteria())
    seen = rows_of(
        at_speed("native", 1),
        at_speed("qr_pinv", 4),
        {"strategy": "triangular_solve", "status": "n/a"},
    )
    monkeypatch.setattr(regret, "measure", lambda case, names, **options: seen)
    return regret.score([Case("pinv", (64, 8)), Case("pinv", (32, 8))], policy, order)


def test_regret_is_the_ratio_to_the_fastest_eligible(scored):
    by_choice = scored.groupby("choice")["regret"].max()
    assert by_choice["policy"] == by_choice["native"] == by_choice["single default"] == 4
    assert by_choice["qr_pinv"] == 1
    assert by_choice["triangular_solve"] == math.inf


def test_the_summary_ranks_choices(scored):
    summary = regret.summary(scored)
    assert summary.index[0] == "qr_pinv"
    assert summary.loc["triangular_solve", "eligible"] == 0
    assert summary.loc["policy", "cases"] == 2


def test_wrong_choices_are_listed_with_severity(scored):
    wrong = regret.wrong_choices(scored)
    assert list(wrong["severity"]) == ["severe", "severe"]
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
