"""Rounds, on a time that only the measured callables advance."""

import pytest
from fake_clock import FakeClock

from strategies.measuring.timing import HOPELESS, interleaved, timings


def timed(clock, budget=0.0, **seconds):
    samplers = {name: clock.sampler(name, value) for name, value in seconds.items()}
    return interleaved(samplers, budget=budget, timer=clock)


def test_everyone_is_timed():
    found = timed(FakeClock(), a=1.0, b=2.0)
    assert {name: timing.seconds for name, timing in found.items()} == {"a": 1.0, "b": 2.0}


def test_everyone_follows_on_everyone_else_in_the_same_order_in_every_run():
    clocks = FakeClock(), FakeClock()
    for clock in clocks:
        timed(clock, a=1.0, b=1.0, c=1.0)
        log = "".join(clock.log)
        assert all(a + b in log for a in "abc" for b in "abc" if a != b)
    assert clocks[0].log == clocks[1].log


def test_the_hopeless_sit_the_rounds_out():
    clock = FakeClock()
    found = timed(clock, fast=1.0, slow=1.1 * HOPELESS, slowish=0.9 * HOPELESS)
    assert found["slow"].seconds == pytest.approx(1.1 * HOPELESS)
    assert clock.log.count("slow") == 2
    assert clock.log.count("slowish") > 4


def test_one_slow_first_sample_makes_nobody_hopeless():
    clock = FakeClock()
    first = iter([0.05])
    timed(clock, a=0.001, b=lambda: next(first, 0.001))
    assert clock.log.count("b") > 4


def test_the_budget_ends_the_rounds():
    clock = FakeClock()
    timed(clock, budget=19.0, a=1.0, b=1.0)
    assert clock.log.count("a") == 2 + 10  # two for screening


def test_nothing_to_time_takes_no_time():
    assert interleaved({}) == {}


def test_ratios_are_taken_within_each_round():
    drifting = [1.0, 2.0, 4.0, 8.0]
    found = timings({"a": 1.0, "b": 9.0}, {"a": drifting, "b": [2 * s for s in drifting]})
    assert (found["b"].low, found["b"].seconds, found["b"].high) == (6.0, 6.0, 6.0)


def test_who_sat_the_rounds_out_keeps_the_time_of_the_screening():
    found = timings({"slow": 31.0, "fast": 2.0}, {"fast": [3.0] * 4})
    assert found["slow"].seconds == found["slow"].low == 31.0
    assert found["fast"].seconds == 3.0


def test_the_hopeless_stay_hopeless_where_the_rounds_were_slower_than_the_screening():
    rounds = {"noisy": [900.0, 1.0, 800.0, 700.0], "fast": [9.0, 8.0, 7.0, 8.0]}
    found = timings({"slow": 0.5, "noisy": 0.01, "fast": 0.02}, rounds)
    assert found["slow"].seconds == HOPELESS * found["fast"].seconds


def test_halves_are_of_every_other_pair_of_rounds():
    ratios = [1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0]
    found = timings({"a": 1.0, "b": 1.0}, {"a": [1.0] * 8, "b": ratios})
    assert found["b"].halves == (1.0, 3.0)
    assert found["b"].seconds == 2.0
