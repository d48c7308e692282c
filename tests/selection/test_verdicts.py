import dataclasses
import math

import pytest
from by_hand import cell_of, run_of, stable_cell, took

from strategies.measuring import Machine, Objective, Status
from strategies.selection.eligibility import ANY, Criteria
from strategies.selection.verdicts import Verdict, judge


def judged(*measurements, criteria=ANY, more=(), case="pinv 64x8"):
    """The verdict on one cell."""
    (cell,) = judge([run_of(cell_of(*measurements, case=case)), *more], criteria)
    return cell


def chosen(cell):
    return cell.chosen and cell.chosen.strategy


def test_the_fastest_eligible_is_best():
    cell = judged(took("native", 3), took("qr_pinv", 1, 1.1))
    assert [each.verdict for each in cell.judged] == [Verdict.BEST, Verdict.SLOWER]
    assert (chosen(cell), cell.ties, cell.source) == ("qr_pinv", (), "here/run.json")


def test_what_is_unstable_in_a_hard_case_is_not_eligible():
    hard = stable_cell("pinv 9x4 cond=1e8 float32", native=1e9, qr_pinv=3.0)
    cell = judged(took("native", 1), took("qr_pinv", 2), more=[run_of(hard, kind="stability")])
    assert chosen(cell) == "qr_pinv"
    reason = cell.get("native").reason
    assert reason.startswith("unstable: 1e+09 times what rounding explains (limit 100)")
    assert reason.endswith("in pinv 9x4 cond=1e8 float32 cpu")


def test_nothing_is_eligible_for_want_of_a_better_one():
    hard = run_of(stable_cell("pinv 9x4", native=1e9, qr_pinv=101), kind="stability")
    cell = judged(took("native", 1), took("qr_pinv", 2), took("blocked_lu", 3), more=[hard])
    assert cell.chosen is None
    assert "stability was not measured" in cell.get("blocked_lu").reason


@pytest.mark.parametrize(
    ("measured", "criteria", "reason"),
    [
        ({"error": 1e-9}, Criteria(accuracy=1e-8), ""),
        ({"error": 1e-9}, Criteria(accuracy=1e-10), "error 1.0e-09 exceeds 1.0e-10"),
        ({"error": None}, Criteria(accuracy=1e-10), "error not measured"),
        ({"error": 1e6}, ANY, "the gradient is not finite, or has no digit"),
        ({"peak_bytes": 10**9}, Criteria(memory_bytes=1e6), "memory 1.0e+09 B exceeds 1.0e+06 B"),
        ({"status": Status.NOT_APPLICABLE, "note": "too large"}, ANY, "n/a: too large"),
        ({"status": Status.FAILED}, ANY, "failed"),
    ],
)
def test_what_may_not_be_used_says_why(measured, criteria, reason):
    native, fast = took("native", 5, peak_bytes=10), took("qr_pinv", 1, **measured)
    cell = judged(native, fast, criteria=criteria)
    assert cell.get("qr_pinv").reason == reason
    assert chosen(cell) == ("native" if reason else "qr_pinv")


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(ValueError, match="memory has to be a positive number"):
        Criteria(memory_bytes=limit)


def test_what_cannot_be_told_apart_ties_and_the_simpler_is_chosen():
    measured = took("svd_truncated_pinv", 1, 1.1), took("triangular_solve", 1.03, 1.1)
    cell = judged(took("native", 3), *measured)
    assert cell.get("triangular_solve").verdict is Verdict.TIE
    assert (chosen(cell), cell.ties) == ("triangular_solve", ("svd_truncated_pinv",))


def test_simplicity_is_not_bought_at_any_price():
    cell = judged(took("native", 1.5), took("qr_pinv", 1, 2.0))
    assert cell.get("native").verdict is Verdict.TIE
    assert chosen(cell) == "qr_pinv"


def test_a_stranger_comes_after_the_known_in_a_tie():
    known = "svd_truncated_pinv"
    assert chosen(judged(took("a_stranger", 1), took(known, 1))) == known


def test_ratios_are_to_the_fastest_and_their_intervals_hold_them():
    native = judged(took("native", 4, 1.2), took("qr_pinv", 1, 1.2)).get("native")
    ratios = native.ratio, native.ratio_low, native.ratio_high
    assert ratios == pytest.approx((4, 4 / 1.44, 4 * 1.44))


def test_an_interval_of_faster_and_slower_is_too_noisy_to_tell():
    assert judged(took("native", 1.2, 1.5), took("qr_pinv", 1, 1.2)).is_too_noisy
    assert not judged(took("native", 1.2, 1.1), took("qr_pinv", 1, 1.05)).is_too_noisy
    assert not judged(took("native", 4, 1.5), took("qr_pinv", 1, 1.5)).is_too_noisy


@pytest.mark.parametrize(
    ("noise", "contention", "is_busy"),
    [
        (1.4, None, False),
        (1.5, None, True),
        (1.5, 1.1, False),
        (None, 1.1, False),
        (None, 1.8, True),
    ],
)
def test_what_was_measured_beside_other_work_is_too_noisy_to_tell(noise, contention, is_busy):
    cell = dataclasses.replace(
        cell_of(took("native", 4), took("qr_pinv", 1)), contention=contention
    )
    (found,) = judge([run_of(cell, machine=Machine("here", noise=noise))])
    assert found.is_too_noisy == is_busy
    assert found.over_native("qr_pinv", Objective.FORWARD_BACKWARD).is_too_noisy == is_busy
    assert not found.over_native("native", Objective.FORWARD_BACKWARD).is_too_noisy


def test_a_case_slower_than_a_much_larger_one_is_too_noisy_to_tell():
    small = cell_of(took("native", 4), took("qr_pinv", 1), case="pinv 64x8")
    large = cell_of(took("native", 1), took("qr_pinv", 1), case="pinv 128x8")
    other = cell_of(took("native", 9), took("qr_pinv", 1), case="pinv 32x16")
    found = {cell.case.sizes: cell.is_too_noisy for cell in judge([run_of(small, large, other)])}
    assert found == {"64x8": True, "128x8": False, "32x16": False}


def test_a_speedup_is_too_noisy_if_its_interval_is_wide():
    cell = judged(took("native", 400), took("qr_pinv", 1, 1.2), took("blocked_lu", 1, 1.5))
    narrow, wide = (
        cell.over_native(name, Objective.FORWARD_BACKWARD) for name in ("qr_pinv", "blocked_lu")
    )
    assert (narrow.ratio, narrow.is_too_noisy, wide.is_too_noisy) == (400, False, True)


def test_the_objective_decides():
    slow = took("native", 9, peak_bytes=10), took("qr_pinv", 1, peak_bytes=100)
    assert chosen(judged(*slow)) == "qr_pinv"
    assert chosen(judged(*slow, criteria=Criteria(Objective.MEMORY))) == "native"


def test_only_timed_cells_of_a_grid_are_judged():
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
