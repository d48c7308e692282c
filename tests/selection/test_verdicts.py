import math

import pytest

from strategies.measuring.measurement import Objective, Status
from strategies.selection.eligibility import ANY, Criteria, breakdowns
from strategies.selection.verdicts import Verdict, judge


@pytest.fixture
def judged(run_of, cell_of):
    """The verdict on one cell."""

    def judged(*measurements, criteria=ANY, more=(), case="pinv 64x8"):
        runs = [run_of(cell_of(*measurements, case=case), *more)]
        (cell,) = judge(runs, criteria)
        return cell

    return judged


def one(cell, strategy):
    return next(each for each in cell.judged if each.strategy == strategy)


def chosen(cell):
    return cell.chosen and cell.chosen.strategy


def test_the_fastest_eligible_is_best(judged, took):
    cell = judged(took("native", 3), took("qr_pinv", 1, 1.1))
    assert [each.verdict for each in cell.judged] == [Verdict.BEST, Verdict.SLOWER]
    assert (chosen(cell), cell.ties, cell.source) == ("qr_pinv", (), "here/run.json")


def test_ten_times_the_best_error_is_too_much(judged, took):
    cell = judged(took("native", 5, error=1e-13), took("explicit_inverse", 1, error=1.2e-12))
    assert one(cell, "explicit_inverse").verdict is Verdict.INELIGIBLE
    assert one(cell, "explicit_inverse").reason == "error 1.2e-12 exceeds 1.0e-12"
    assert chosen(cell) == "native"


def test_what_a_stable_method_may_have_is_accurate(judged, took):
    assert (
        chosen(judged(took("native", 5, error=1e-20), took("qr_pinv", 1, error=3e-14))) == "qr_pinv"
    )


def test_a_tolerance_replaces_the_comparison(judged, took):
    measured = took("native", 5), took("explicit_inverse", 1, error=1e-9)
    assert chosen(judged(*measured, criteria=Criteria(accuracy=1e-8))) == "explicit_inverse"


def test_a_limit_of_memory(judged, took):
    measured = took("native", 5, peak_bytes=10), took("qr_pinv", 1, peak_bytes=10**9)
    cell = judged(*measured, criteria=Criteria(memory_bytes=1e6))
    assert chosen(cell) == "native"
    assert "memory" in one(cell, "qr_pinv").reason


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(ValueError, match="memory has to be a positive number"):
        Criteria(memory_bytes=limit)


def test_what_did_not_run_says_why(judged, took):
    refused = took("qr_pinv", status=Status.NOT_APPLICABLE, note="too large")
    cell = judged(took("native", 1), refused, took("batch_last", status=Status.FAILED))
    assert one(cell, "qr_pinv").reason == "n/a: too large"
    assert one(cell, "batch_last").reason == "failed"


def test_what_cannot_be_told_apart_ties_and_the_simpler_is_chosen(judged, took):
    measured = took("svd_truncated_pinv", 1, 1.1), took("triangular_solve", 1.03, 1.1)
    cell = judged(took("native", 3), *measured)
    assert one(cell, "triangular_solve").verdict is Verdict.TIE
    assert (chosen(cell), cell.ties) == ("triangular_solve", ("svd_truncated_pinv",))


def test_simplicity_is_not_bought_at_any_price(judged, took):
    cell = judged(took("native", 1.5), took("qr_pinv", 1, 2.0))
    assert one(cell, "native").verdict is Verdict.TIE
    assert chosen(cell) == "qr_pinv"


def test_a_stranger_comes_after_the_known_in_a_tie(judged, took):
    assert (
        chosen(judged(took("a_stranger", 1), took("svd_truncated_pinv", 1))) == "svd_truncated_pinv"
    )


def test_ratios_are_to_the_fastest_and_their_intervals_hold_them(judged, took):
    native = one(judged(took("native", 4, 1.2), took("qr_pinv", 1, 1.2)), "native")
    ratios = native.ratio, native.ratio_low, native.ratio_high
    assert ratios == pytest.approx((4, 4 / 1.44, 4 * 1.44))


def test_an_interval_of_faster_and_slower_is_too_noisy_to_tell(judged, took):
    assert judged(took("native", 1.2, 1.5), took("qr_pinv", 1, 1.2)).is_too_noisy
    assert not judged(took("native", 1.2, 1.1), took("qr_pinv", 1, 1.05)).is_too_noisy
    assert not judged(took("native", 4, 1.5), took("qr_pinv", 1, 1.5)).is_too_noisy


def test_the_objective_decides(judged, took):
    slow = took("native", 9, peak_bytes=10), took("qr_pinv", 1, peak_bytes=100)
    assert chosen(judged(*slow)) == "qr_pinv"
    assert chosen(judged(*slow, criteria=Criteria(Objective.MEMORY))) == "native"


def test_without_any_error_measured_nobody_is_refused_for_it(judged, took):
    measured = took("native", 2, error=None), took("qr_pinv", 1, error=None)
    assert chosen(judged(*measured)) == "qr_pinv"
    cell = judged(took("native", 2), took("qr_pinv", 1, error=None))
    assert one(cell, "qr_pinv").reason == "error not measured"


def test_only_timed_cells_of_a_grid_are_judged(run_of, cell_of, took):
    timed, errors = took("native", 1), took("native")
    runs = [
        run_of(
            cell_of(timed), cell_of(errors, case="inv 4x4"), cell_of(timed, case="inv 8x8 cond=1e3")
        ),
        run_of(cell_of(timed, case="inv 9x9"), kind="peers"),
    ]
    assert [str(cell.case) for cell in judge(runs)] == ["pinv 64x8 float64 cpu"]
    with pytest.raises(ValueError, match="no case in which backward was measured"):
        judge(runs, Criteria(Objective.BACKWARD))


@pytest.fixture
def conditioned(cell_of, took):
    def conditioned(error, log10_cond=6, dtype="float64"):
        good = took("qr_pinv", error=1e-16 * 10**log10_cond)
        case = f"pinv 64x8 cond=1e{log10_cond} {dtype}"
        return cell_of(good, took("explicit_inverse", error=error), case=case)

    return conditioned


def test_who_loses_digits_at_bad_condition_is_not_chosen(judged, took, conditioned):
    timed, bad = (took("qr_pinv", 2), took("explicit_inverse", 1)), [conditioned(1e-4)]
    cell = judged(*timed, more=bad)
    assert chosen(cell) == "qr_pinv"
    assert "unstable: at κ = 1e6" in one(cell, "explicit_inverse").reason
    # A tolerance is about the user's own matrices.
    assert chosen(judged(*timed, more=bad, criteria=Criteria(accuracy=1e-10))) == "explicit_inverse"


def test_an_error_that_the_condition_explains_is_no_breakdown(run_of, conditioned):
    assert not any(breakdowns([run_of(conditioned(20 * 1e6 * 2.0**-53))]).values())
    # Where no digit can be right, nobody breaks down.
    assert not any(breakdowns([run_of(conditioned(1e5, log10_cond=16))]).values())


def test_a_dtype_without_conditioning_inherits(run_of, cell_of, took, conditioned):
    timed = cell_of(took("explicit_inverse", 1), case="pinv 64x8 float32")
    found = breakdowns([run_of(timed, conditioned(1e-4))])
    assert "(float64)" in found["pinv", "float32"]["explicit_inverse"]
