import math

import pandas as pd
import pytest

from strategies.selection.verdicts import Criteria, Objective, breakdowns, judge


def verdict(judged, strategy):
    return judged.set_index("strategy").loc[strategy, "verdict"]


def reason(judged, strategy):
    return judged.set_index("strategy").loc[strategy, "reason"]


def chosen(judged):
    return list(judged[judged["chosen"]]["strategy"])


def test_the_fastest_eligible_is_best(rows_of, at_speed, order):
    judged = judge(rows_of(at_speed("native", 1), at_speed("qr_pinv", 3, 1.1)), order)
    assert verdict(judged, "qr_pinv") == "best"
    assert verdict(judged, "native") == "slower"
    assert chosen(judged) == ["qr_pinv"]


def test_ten_times_the_best_error_is_too_much(rows_of, at_speed, order):
    fast = at_speed("explicit_inverse", 5, error=1.2e-12)
    judged = judge(rows_of(at_speed("native", 1, error=1e-13), fast), order)
    assert verdict(judged, "explicit_inverse") == "ineligible"
    assert reason(judged, "explicit_inverse") == "error 1.2e-12 exceeds 1.0e-12"
    assert chosen(judged) == ["native"]


def test_what_a_stable_method_may_have_is_accurate(rows_of, at_speed, order):
    lucky, fast = at_speed("native", 1, error=1e-20), at_speed("qr_pinv", 5, error=3e-14)
    assert chosen(judge(rows_of(lucky, fast), order)) == ["qr_pinv"]


def test_a_tolerance_replaces_the_comparison(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1), at_speed("explicit_inverse", 5, error=1e-9))
    assert chosen(judge(rows, order, Criteria(accuracy=1e-8))) == ["explicit_inverse"]


def test_a_limit_of_memory(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1, peak_bytes=10), at_speed("qr_pinv", 5, peak_bytes=1e9))
    judged = judge(rows, order, Criteria(memory_bytes=1e6))
    assert chosen(judged) == ["native"]
    assert "memory" in reason(judged, "qr_pinv")


@pytest.mark.parametrize("status", ["n/a", "failed", "timeout"])
def test_what_did_not_run_says_why(rows_of, at_speed, order, status):
    judged = judge(rows_of(at_speed("native", 1), {"strategy": "qr_pinv", "status": status}), order)
    assert reason(judged, "qr_pinv") == status


def test_what_cannot_be_told_apart_ties_and_the_simpler_is_chosen(rows_of, at_speed, order):
    rows = rows_of(
        at_speed("native", 1),
        at_speed("svd_truncated_pinv", 3.1, 1.1),
        at_speed("triangular_solve", 3, 1.1),
    )
    judged = judge(rows, order)
    assert verdict(judged, "triangular_solve") == verdict(judged, "svd_truncated_pinv") == "tie"
    assert chosen(judged) == ["triangular_solve"]


def test_simplicity_is_not_bought_at_any_price(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1), at_speed("qr_pinv", 1.5, 2.0))
    judged = judge(rows, order)
    assert verdict(judged, "native") == "tie"
    assert chosen(judged) == ["qr_pinv"]


def test_a_stranger_comes_after_the_known_in_a_tie(rows_of, at_speed, order):
    rows = rows_of(at_speed("a_stranger", 2, 1.1), at_speed("svd_truncated_pinv", 2, 1.1))
    assert chosen(judge(rows, order)) == ["svd_truncated_pinv"]


def test_ratios_are_to_the_fastest_and_their_intervals_hold_them(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1, 1.2), at_speed("qr_pinv", 4, 1.2))
    native = judge(rows, order).set_index("strategy").loc["native"]
    assert native["ratio"] == pytest.approx(4)
    assert native["ratio_low"] == pytest.approx(4 / 1.2)
    assert native["ratio_high"] == pytest.approx(4 * 1.2)
    assert native["paired"]


def test_seconds_serve_where_a_paired_ratio_is_missing(rows_of, order):
    rows = rows_of(
        {"strategy": "triangular_solve", "backward_seconds": 1.0},
        {"strategy": "qr_pinv", "backward_seconds": 2.0},
    )
    judged = judge(rows, order)
    assert list(judged["ratio"]) == [1.0, 2.0]
    assert not judged["paired"].any()


def test_memory_can_be_the_objective(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 9, peak_bytes=100), at_speed("qr_pinv", 1, peak_bytes=10))
    assert chosen(judge(rows, order, Criteria(Objective.MEMORY))) == ["qr_pinv"]


def test_without_any_error_measured_nobody_is_refused_for_it(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1), at_speed("qr_pinv", 2), error=math.nan)
    assert chosen(judge(rows, order)) == ["qr_pinv"]


def test_an_error_that_is_missing_where_others_have_one_is_held_against(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1), at_speed("qr_pinv", 2, error=math.nan))
    assert chosen(judge(rows, order)) == ["native"]


def test_a_case_that_nobody_can_do_has_no_choice(rows_of, order):
    judged = judge(rows_of({"strategy": "native", "status": "n/a"}), order)
    assert chosen(judged) == []


def test_other_libraries_are_not_judged(rows_of, at_speed, order):
    rows = rows_of(at_speed("native", 1), at_speed("jax", 99, is_peer=True))
    assert list(judge(rows, order)["strategy"]) == ["native"]


def conditioned(rows_of, log10_cond, error, **case):
    good = {"strategy": "qr_pinv", "error": 1e-16 * 10**log10_cond}
    return rows_of(
        good, {"strategy": "explicit_inverse", "error": error}, log10_cond=log10_cond, **case
    )


def test_who_loses_digits_at_bad_condition_is_not_the_default(rows_of, at_speed, order):
    timed = rows_of(at_speed("qr_pinv", 1), at_speed("explicit_inverse", 2))
    rows = pd.concat([timed, conditioned(rows_of, 6, 1e-4)], ignore_index=True)
    judged = judge(rows, order)
    assert chosen(judged) == ["qr_pinv"]
    assert "unstable: at κ = 1e6" in reason(judged, "explicit_inverse")


def test_a_tolerance_is_about_the_users_own_matrices(rows_of, at_speed, order):
    timed = rows_of(at_speed("qr_pinv", 1), at_speed("explicit_inverse", 2))
    rows = pd.concat([timed, conditioned(rows_of, 6, 1e-4)], ignore_index=True)
    assert chosen(judge(rows, order, Criteria(accuracy=1e-10))) == ["explicit_inverse"]


def test_an_error_of_some_condition_times_roundoff_is_in_order(rows_of):
    assert breakdowns(conditioned(rows_of, 6, 20 * 1e6 * 2.0**-53)) == {}


def test_where_no_digit_can_be_right_nobody_breaks_down(rows_of):
    assert breakdowns(conditioned(rows_of, 16, 1e6)) == {}


def test_a_dtype_without_conditioning_inherits(rows_of, at_speed):
    timed = rows_of(at_speed("explicit_inverse", 2), dtype="float32")
    found = breakdowns(pd.concat([timed, conditioned(rows_of, 6, 1e-4)], ignore_index=True))
    assert "(float64)" in found["pinv", "float32", "explicit_inverse"]


def test_results_of_conditioning_alone_are_no_basis(rows_of, order):
    with pytest.raises(ValueError, match="no timed case"):
        judge(conditioned(rows_of, 6, 1e-4), order)
