"""The gate on slowdowns, on times that are known."""

import itertools

from benchmarks import baseline

KEPT = {
    "inv 8x8 float64 cpu": {"qr_pinv": 2.0, "explicit_inverse": 1.0},
    "inv 9x9 float64 cpu": {"qr_pinv": 3.0, "explicit_inverse": 1.0},
    "det 8x8 float64 cpu": {"qr_pinv": 5.0},
}


def slowed(strategy, factor):
    return {
        label: {
            name: ratio * (factor if name == strategy else 1) for name, ratio in by_strategy.items()
        }
        for label, by_strategy in KEPT.items()
    }


def test_what_is_unchanged_is_at_one():
    assert set(baseline.slowdowns(KEPT, KEPT).values()) == {1.0}


def test_a_strategy_that_is_slowed_twice_is_beyond_the_limit_and_no_other():
    found = baseline.slowdowns(KEPT, slowed("qr_pinv", 2))
    slower = {group for group, slowdown in found.items() if slowdown > baseline.SLOWER}
    assert slower == {("qr_pinv", "inv"), ("qr_pinv", "det")}


def test_one_disturbed_case_among_two_is_no_slowdown():
    measured = {**KEPT, "inv 8x8 float64 cpu": {"qr_pinv": 4.0}}
    assert baseline.slowdowns(KEPT, measured)["qr_pinv", "inv"] < baseline.SLOWER


def test_new_cases_and_strategies_are_not_judged():
    assert baseline.slowdowns(KEPT, {"inv 8x8 float64 cpu": {"new": 9.0}, "pinv": {"new": 9}}) == {}


def test_what_is_saved_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(baseline, "PATH", tmp_path / "baseline.json")
    baseline.save(KEPT, {"threads": "1"})
    assert baseline.load() == KEPT


def test_the_committed_baseline_is_readable():
    assert all(ratio > 0 for each in baseline.load().values() for ratio in each.values())


def test_disturbed_blocks_do_not_count(monkeypatch):
    blocks = {"mine": itertools.cycle([9.0, 4.0, 30.0]), "theirs": itertools.cycle([7.0, 2.0])}
    monkeypatch.setattr(baseline, "sampler", lambda name: lambda: next(blocks[name]))
    assert baseline.over_native("mine", "theirs", budget=0) == 2.0
