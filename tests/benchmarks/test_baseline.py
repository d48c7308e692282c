"""The gate on slowdowns, on times that are known."""

import pytest
from by_hand import cell_of, took

from benchmarks import baseline
from strategies.measuring import store
from strategies.measuring.grid_cases import timed
from strategies.measuring.measurement import Objective

RATIOS = {
    "inv 8x8": {"qr_pinv": 2.0, "explicit_inverse": 1.0},
    "inv 9x9": {"qr_pinv": 3.0, "explicit_inverse": 1.0},
    "det 8x8": {"qr_pinv": 5.0},
}


def cells(ratios, native=1.0):
    """Cells in which strategies take these multiples of native's time."""
    found = []
    for text, by_name in ratios.items():
        times = {"native": 1.0, **by_name}.items()
        of_case = (took(name, native * ratio, by=Objective.BACKWARD) for name, ratio in times)
        found.append(cell_of(*of_case, case=text))
    return found


KEPT = cells(RATIOS)


def slower(ratios):
    found = baseline.slowdowns(KEPT, cells(ratios))
    return {group for group, slowdown in found.items() if slowdown > baseline.SLOWER}


def test_a_slower_machine_is_no_slowdown():
    assert set(baseline.slowdowns(KEPT, cells(RATIOS, native=2.0)).values()) == {1.0}


def test_a_strategy_that_is_slowed_twice_is_beyond_the_limit_and_no_other():
    slowed = {text: of | {"qr_pinv": 2 * of["qr_pinv"]} for text, of in RATIOS.items()}
    assert slower(slowed) == {("qr_pinv", "inv"), ("qr_pinv", "det")}


def test_one_disturbed_case_among_two_is_no_slowdown():
    assert not slower(RATIOS | {"inv 8x8": {"qr_pinv": 4.0}})


def test_new_cases_and_strategies_are_not_judged():
    new = {"inv 8x8": {"new": 9.0}, "pinv 8x8": {"qr_pinv": 9}}
    assert baseline.slowdowns(KEPT, cells(new)) == {}


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(baseline, "PATH", tmp_path / "baseline.json")
    for _ in range(2):
        store.save(baseline.PATH, "baseline", KEPT)
        assert baseline.load() == tuple(KEPT)


def test_the_committed_baseline_is_of_the_quick_grid():
    kept = {cell.case for cell in baseline.load()}
    assert kept >= {case for case in timed("quick") if case.device == "cpu"}


@pytest.mark.parametrize(
    ("text", "ratio", "passes", "said"),
    [
        ("inv 8x8", 2.0, True, "no strategy has become slower: 1.00× at most"),
        ("inv 8x8", 4.0, False, "qr_pinv takes 2.00 times as long in inv as it did"),
        ("inv 99x99", 2.0, False, "none of these cases"),
    ],
)
def test_a_session_is_measured_once_a_case_and_judged(text, ratio, passes, said, monkeypatch):
    (cell,) = cells({text: {"qr_pinv": ratio}})
    measured = iter([cell])
    monkeypatch.setattr(baseline, "measure", lambda *_, **__: next(measured))
    monkeypatch.setattr(baseline, "session", {})
    monkeypatch.setattr(baseline, "load", lambda: KEPT)
    assert baseline.measured(cell.case) is baseline.measured(cell.case) is cell
    passed, (line,) = baseline.verdict()
    assert passed == passes
    assert said in line
