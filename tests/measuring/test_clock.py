"""The clock, on a time that only the measured callables advance."""

from itertools import pairwise

import numpy as np
import pytest
from fake_clock import FakeClock

from strategies.measuring.clock import SHORTEST_BLOCK, median_interval, paired, sampler


def test_ratio_and_seconds_of_constant_tasks():
    clock = FakeClock()
    timing = paired(clock.task("f", 0.3), clock.task("g", 0.1), budget=4.0, timer=clock)
    assert timing.ratio == pytest.approx(3.0)
    assert (timing.low, timing.high) == pytest.approx((3.0, 3.0))
    assert (timing.seconds_f, timing.seconds_g) == pytest.approx((0.3, 0.1))


def test_order_alternates_between_pairs():
    clock = FakeClock()
    paired(clock.task("f", 1.0), clock.task("g", 1.0), max_pairs=6, timer=clock)
    assert "".join(clock.log).endswith("fggffggffggf")


def test_linear_drift_cancels():
    clock = FakeClock()
    drifting = lambda: 1.0 + 0.01 * clock.now  # noqa: E731
    timing = paired(clock.task("f", drifting), clock.task("g", drifting), budget=0, timer=clock)
    assert timing.ratio == pytest.approx(1.0, abs=1e-3)
    assert timing.low < 1 < timing.high


def test_short_calls_are_timed_in_blocks():
    clock = FakeClock()
    timing = paired(clock.task("f", 1e-6), clock.task("g", 0.1), max_pairs=6, timer=clock)
    assert clock.log.count("f") >= 6 * SHORTEST_BLOCK / 1e-6
    assert timing.seconds_f == pytest.approx(1e-6)


def test_budget_ends_the_pairs():
    clock = FakeClock()
    timing = paired(clock.task("f", 0.2), clock.task("g", 0.2), budget=20.0, timer=clock)
    assert len(timing.ratios) == pytest.approx(20.0 / 0.4, abs=3)


@pytest.mark.parametrize(("seconds", "calls"), [(0.01, 2), (0.2, 1)])
def test_a_sample_of_one_call_begins_with_an_untimed_one_unless_it_is_long(seconds, calls):
    clock = FakeClock()
    sample = sampler(clock.task("f", seconds), clock)
    clock.log.clear()
    assert sample() == pytest.approx(seconds)
    assert len(clock.log) == calls


def test_fewest_pairs_are_run_whatever_they_cost():
    clock = FakeClock()
    timing = paired(clock.task("f", 100.0), clock.task("g", 1.0), budget=1.0, timer=clock)
    assert len(timing.ratios) == 6


def test_most_pairs_end_before_the_budget():
    clock = FakeClock()
    timing = paired(
        clock.task("f", 0.1), clock.task("g", 0.1), max_pairs=7, budget=9.0, timer=clock
    )
    assert len(timing.ratios) == 7


def test_ratios_are_kept_in_order():
    clock = FakeClock()
    noise = np.random.default_rng(0)
    noisy = lambda: float(noise.uniform(0.01, 0.02))  # noqa: E731
    timing = paired(clock.task("f", noisy), clock.task("g", noisy), timer=clock)
    assert all(a <= b for a, b in pairwise(timing.ratios))
    assert timing.low < timing.ratio < timing.high


@pytest.mark.parametrize(("fewest", "most"), [(5, 100), (10, 9)])
def test_impossible_numbers_of_pairs_are_refused(fewest, most):
    with pytest.raises(ValueError, match="min_pairs <= max_pairs, got"):
        paired(int, int, min_pairs=fewest, max_pairs=most)


@pytest.mark.parametrize(
    ("n", "ends"), [(1, (0, 0)), (5, (0, 4)), (6, (0, 5)), (9, (1, 7)), (20, (5, 14))]
)
def test_interval_of_the_median(n, ends):
    # From tables of the sign test, as ranks from zero; below six the extremes.
    assert median_interval([float(i) for i in range(n)]) == ends


def test_interval_covers_the_median_as_often_as_it_says():
    # Skewed samples, whose median is 1.
    samples = np.exp(np.random.default_rng(1).normal(size=(2000, 15)))
    ends = [median_interval(sorted(row)) for row in samples.tolist()]
    covered = sum(low <= 1 <= high for low, high in ends) / len(ends)
    assert 0.95 < covered < 0.98
