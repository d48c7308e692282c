import math
import random
import statistics

import pytest
from by_hand import cell_of, run_of, took

from strategies.measuring.measurement import Status, Timing
from strategies.selection import regret
from strategies.selection.eligibility import Criteria
from strategies.selection.policies import build


@pytest.fixture
def says_native():
    """A policy that has found native to be the fastest."""
    return build([run_of(cell_of(took("native", 1), took("qr_pinv", 2)))], Criteria())


def drawn(native, qr_pinv, case="pinv 64x8 cond=1e1", **others):
    """A case in which triangular_solve refuses."""
    refused = took("triangular_solve", status=Status.NOT_APPLICABLE)
    return cell_of(took("native", native), refused, took("qr_pinv", qr_pinv, **others), case=case)


def by_choice(scores):
    return {score.choice: score for score in scores}


def test_regret_is_the_time_over_the_fastest(says_native):
    found = by_choice(regret.score([drawn(4.0, 1.0)], says_native))
    regrets = {choice: score.regret for choice, score in found.items()}
    assert regrets == {
        **dict.fromkeys(("policy", "single default", "native"), 4),
        "qr_pinv": 1,
        "triangular_solve": math.inf,
    }


def test_the_summary_ranks_choices(says_native):
    scores = regret.score([drawn(4.0, 1.0)] * 2, says_native)
    first, *_ = found = regret.summaries(scores)
    by_name = {summary.choice: summary for summary in found}
    assert (first.choice, first.over_native) == ("qr_pinv", pytest.approx(4))
    assert (by_name["policy"].cases, by_name["policy"].over_native) == (2, 1)
    assert by_name["triangular_solve"].eligible == 0
    assert math.isnan(by_name["triangular_solve"].over_native)


def test_equal_strategies_have_no_regret_for_all_their_noise():
    noise = random.Random(0)  # noqa: S311 - no secret
    mean = 0.0
    for _ in range(200):
        timings = {}
        for name in range(7):
            halves = [
                statistics.median(noise.lognormvariate(0, 0.1) for _ in range(12)) for _ in range(2)
            ]
            timings[str(name)] = Timing(1.0, 1.0, 1.0, tuple(halves))
        mean += math.log(regret.regrets(timings)["0"]) / 200
    # The ratio of two medians over the fastest of seven would be 4 % too large.
    assert mean < 0.02


def test_what_is_not_accurate_is_infinitely_regretted(says_native):
    found = by_choice(regret.score([drawn(4.0, 1.0, error=1e6)], says_native))
    assert found["qr_pinv"].regret == math.inf
    assert found["native"].regret == 1


def test_where_auto_is_refused_the_rank_its_next_candidate_counts():
    full = cell_of(took("native", 4), took("triangular_solve", 1))
    deficient = cell_of(took("native", 3), took("qr_pinv", 1), case="pinv 64x8 rank=4")
    policy = build([run_of(full, deficient)], Criteria())
    scores = regret.score([drawn(2.0, 1.0, case="pinv 64x8 rank=4")], policy)
    assert by_choice(scores)["policy"].strategy == "qr_pinv"


def test_what_is_slower_than_native_is_listed_unless_it_may_be_noise():
    policy = build([run_of(cell_of(took("native", 4), took("qr_pinv", 1)))], Criteria())
    cases = [drawn(1.0, 1.05), drawn(1.0, 1.5), drawn(1.0, 1.3, spread=1.6)]
    (slower,) = regret.slower_than_native(regret.score(cases, policy))
    assert 1 / slower.over_native[0] == pytest.approx(1.5)


def test_a_case_without_an_eligible_strategy_is_left_out(says_native):
    assert regret.score([cell_of(took("native", status=Status.FAILED))], says_native) == []


@pytest.mark.parametrize(
    ("slow", "severity"), [(1.04, None), (1.1, "mild"), (1.2, "moderate"), (2.0, "severe")]
)
def test_wrong_choices_are_listed_with_severity(says_native, slow, severity):
    wrong = regret.wrong_choices(regret.score([drawn(slow, 1.0)], says_native))
    assert [each.severity for each in wrong] == ([severity] if severity else [])
