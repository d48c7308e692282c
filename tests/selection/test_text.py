import math

import pytest

from strategies.measuring.machine import Machine
from strategies.selection import text


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (text.seconds(12.3), "12.3 s"),
        (text.seconds(0.00123), "1.23 ms"),
        (text.seconds(4.2e-8), "0.042 µs"),
        (text.size(3), "3 B"),
        (text.size(2_500_000), "2.5 MB"),
        (text.times(1.456), "1.5×"),
        (text.times(145.6), "146×"),
        (text.seconds(None), text.NOTHING),
        (text.size(math.nan), text.NOTHING),
        (text.times(math.nan), text.NOTHING),
        (text.doubtful("2×", True), "? 2×"),
        (text.doubtful("2×", False), "2×"),
        (text.doubtful(text.NOTHING, True), text.NOTHING),
        (text.quietness([Machine("does not say")]), ""),
    ],
)
def test_a_number_has_its_unit_a_dash_if_there_is_none_and_a_mark_if_it_is_doubtful(told, expected):
    assert told == expected


def test_runs_that_differ_in_the_day_alone_share_a_line():
    days = ("2026-11-20T10:00:00+00:00", "2026-11-22T10:00:00+00:00")
    machines = [Machine("a", torch="2.13", started_at=day) for day in days]
    assert text.provenance([*machines, Machine("b")]) == [
        "a · torch 2.13 · 2026-11-20 to 2026-11-22",
        "b",
    ]


@pytest.mark.parametrize(
    ("noise", "said"), [(1.1, "was quiet"), (1.3, "was not quiet"), (1.6, "was busy")]
)
def test_how_busy_the_machine_was_is_told_in_words(noise, said):
    told = text.quietness([Machine("a", load=0.25, noise=1.0), Machine("b", load=0.5, noise=noise)])
    assert told.startswith(f"load 0.50 a core, noise {noise:.2f}: ")
    assert said in told
