import math

import pytest

from strategies.measuring.machine import Machine
from strategies.selection import text


def test_an_amount_has_a_unit_of_its_size():
    assert text.seconds(12.3) == "12.3 s"
    assert text.seconds(0.00123) == "1.23 ms"
    assert text.seconds(4.2e-8) == "0.042 µs"
    assert text.size(3) == "3 B"
    assert text.size(2_500_000) == "2.5 MB"


def test_a_ratio_has_two_digits_or_all_before_the_point():
    assert (text.times(1.456), text.times(145.6)) == ("1.5×", "146×")


def test_what_was_not_measured_is_a_dash():
    assert {text.seconds(None), text.size(math.nan), text.times(math.nan)} == {text.NOTHING}


def test_runs_that_differ_in_the_day_alone_share_a_line():
    days = ("2026-11-20T10:00:00+00:00", "2026-11-22T10:00:00+00:00")
    machines = [Machine("a", torch="2.13", started_at=day) for day in days]
    assert text.provenance([*machines, Machine("b")]) == [
        "a · torch 2.13 · 2026-11-20 to 2026-11-22",
        "b",
    ]


def test_a_ratio_that_is_too_noisy_to_tell_is_marked():
    assert text.doubtful("2×", True) == "? 2×"
    assert text.doubtful("2×", False) == "2×"
    assert text.doubtful(text.NOTHING, True) == text.NOTHING


@pytest.mark.parametrize(
    ("noise", "said"), [(1.1, "was quiet"), (1.3, "was not quiet"), (1.6, "was busy")]
)
def test_how_busy_the_machine_was_is_told_in_words(noise, said):
    told = text.quietness([Machine("a", load=0.25, noise=1.0), Machine("b", load=0.5, noise=noise)])
    assert told.startswith(f"load 0.50 a core, noise {noise:.2f}: ")
    assert said in told


def test_of_a_machine_that_does_not_say_how_busy_it_was_nothing_is_told():
    assert text.quietness([Machine("a")]) == ""
