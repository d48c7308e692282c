"""What long commands show."""

import io

import pytest
from rich.console import Console

from strategies.cli.progress import countdown, progress


@pytest.mark.parametrize(
    ("moments", "later"),
    [([0, 10, 40, 60], ["2 of 4 done, about 40 s left: third"]), ([0, 1, 2, 3], [])],
)
def test_a_log_gets_a_line_now_and_then(moments, later):
    log = io.StringIO()
    clock = iter([0.0, *moments])
    with progress(4, Console(file=log, width=200), lambda: next(clock)) as begin:
        for name in ("first", "second", "third", "fourth"):
            begin(name)
    assert log.getvalue().splitlines() == ["0 of 4 done: first", *later]


def test_a_terminal_gets_a_bar_that_is_gone_afterwards():
    screen = io.StringIO()
    with progress(2, Console(file=screen, width=120, force_terminal=True)) as begin:
        begin("first")
        begin("second")
    assert "second" in screen.getvalue()
    assert "1/2" in screen.getvalue()


def test_a_countdown_says_how_much_time_is_over():
    log, clock = io.StringIO(), iter([0.0, 0.0, 10.0, 31.0])
    with countdown(60, Console(file=log, width=200), lambda: next(clock)) as begins:
        for name in ("first", "second", "third"):
            begins(name)
    assert log.getvalue().splitlines() == ["0 of 60 s: first", "31 of 60 s: third"]
    screen = io.StringIO()
    with countdown(60, Console(file=screen, width=120, force_terminal=True)) as begins:
        begins("first")
    assert "first" in screen.getvalue()
