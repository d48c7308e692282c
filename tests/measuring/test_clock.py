"""The clock, on a time that only the measured callables advance."""

import numpy as np
import pytest
from fake_clock import FakeClock

from strategies.measuring.clock import SHORTEST_BLOCK, median_interval, sampler


def test_short_calls_are_timed_in_blocks():
    clock = FakeClock()
    assert sampler(clock.task("f", 1e-6), clock)() == pytest.approx(1e-6)
    assert clock.log.count("f") >= SHORTEST_BLOCK / 1e-6


@pytest.mark.parametrize(("seconds", "calls"), [(0.01, 2), (0.2, 1)])
def test_a_sample_of_one_call_begins_with_an_untimed_one_unless_it_is_long(seconds, calls):
    clock = FakeClock()
    sample = sampler(clock.task("f", seconds), clock)
    clock.log.clear()
    assert sample() == pytest.approx(seconds)
    assert len(clock.log) == calls


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
