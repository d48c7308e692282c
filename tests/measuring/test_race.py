"""Who is the fastest, on a time that only the measured callables advance."""

import itertools

import pytest
from fake_clock import FakeClock

from strategies.measuring import Case, Status
from strategies.measuring.race import is_clear, race, rounds


def counted(budget, **seconds):
    clock = FakeClock()
    samplers = {name: clock.sampler(name, value) for name, value in seconds.items()}
    return {name: len(of) for name, of in rounds(samplers, budget=budget, timer=clock).items()}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"fast": 1.0, "slow": 2.0, "slower": 5.0}, {"fast": 3, "slow": 3, "slower": 3}),
        ({"a": 1.0, "b": 1.2, "slow": 2.0}, {"a": 6, "b": 6, "slow": 3}),
        ({"a": 1.0, "b": 1.01}, {"a": 6, "b": 6}),
        ({}, {}),
    ],
    ids=["a clear order", "a close one, and what is not", "as good", "nothing"],
)
def test_rounds_end_when_all_is_clear(seconds, expected):
    assert counted(**seconds, budget=1000) == expected


def test_what_is_alone_or_as_good_is_clear():
    assert is_clear({"a": [1.0]})
    assert is_clear({"a": [1.0] * 6, "b": [0.99, 1.02] * 3})


def test_noise_takes_as_many_rounds_as_there_is_time_for():
    noise = itertools.cycle([0.7, 1.4])
    noisy = {"a": 1.0, "b": lambda: next(noise)}
    assert counted(**noisy, budget=1000)["a"] == 24
    assert counted(**noisy, budget=0)["a"] == 6


def test_what_refuses_a_case_is_told_and_the_others_are_timed():
    cell = race(Case.parse("pinv 8x8 rank=4"), ["qr_pinv", "triangular_solve"], budget=0)
    takes_it, refuses = cell
    assert takes_it.forward_backward.seconds > 0
    assert refuses.status is Status.NOT_APPLICABLE
    assert refuses.forward_backward is None
