"""Rounds, on a time that only the measured callables advance."""

import pytest
from fake_clock import FakeClock

from strategies.measuring.rounds import HOPELESS, in_rounds


def timed(clock, budget=0.0, **seconds):
    calls = {name: clock.task(name, value) for name, value in seconds.items()}
    return in_rounds(calls, min_rounds=4, budget=budget, timer=clock)


def test_everyone_is_timed_in_every_round():
    found = timed(FakeClock(), a=1.0, b=2.0)
    assert found.seconds == {"a": [1.0] * 4, "b": [2.0] * 4}


def test_everyone_follows_on_everyone_else():
    clock = FakeClock()
    in_rounds({name: clock.task(name, 1.0) for name in "abc"}, budget=0, timer=clock)
    log = "".join(clock.log)
    assert all(a + b in log for a in "abc" for b in "abc" if a != b)


def test_orders_are_the_same_in_every_run():
    clocks = FakeClock(), FakeClock()
    for clock in clocks:
        timed(clock, a=1.0, b=1.0, c=1.0)
    assert clocks[0].log == clocks[1].log


def test_the_hopeless_sit_the_rounds_out():
    clock = FakeClock()
    found = timed(clock, fast=1.0, slow=1.1 * HOPELESS, slowish=0.9 * HOPELESS)
    assert set(found.seconds) == {"fast", "slowish"}
    assert found.screened["slow"] == pytest.approx(1.1 * HOPELESS)
    assert clock.log.count("slow") == 1


def test_who_is_hopeless_can_be_said():
    clock = FakeClock()
    calls = {"fast": clock.task("fast", 1.0), "slow": clock.task("slow", 2.5)}
    assert set(in_rounds(calls, hopeless=2, budget=0, timer=clock).seconds) == {"fast"}


def test_one_slow_first_call_makes_nobody_hopeless():
    clock = FakeClock()
    first = iter([0.05])
    found = timed(clock, a=0.001, b=lambda: next(first, 0.001))
    assert set(found.seconds) == {"a", "b"}


def test_the_budget_ends_the_rounds():
    found = timed(FakeClock(), budget=19.0, a=1.0, b=1.0)
    assert len(found.seconds["a"]) == 10


def test_nothing_to_time_takes_no_time():
    assert in_rounds({}).seconds == {}
