"""Who has a cell, without a lock."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from strategies.measuring.machine import Machine
from strategies.sweeps import attempts

ME = msgspec.structs.replace(attempts.this_process(), job="7_1")
ELSEWHERE = msgspec.structs.replace(ME, host="another", job="8_1")


@pytest.fixture
def stem(tmp_path):
    return tmp_path / "epyc" / "inv-4x4"


def test_one_has_it_and_no_other(stem):
    mine = attempts.begin(stem, ME)
    assert mine.is_mine()
    assert attempts.begin(stem, ELSEWHERE) is None
    assert attempts.past(stem).running == ME
    mine.release()
    assert attempts.begin(stem, ELSEWHERE).number == 1


def test_of_many_at_once_one_gets_it(stem):
    barrier, got = threading.Barrier(8), []

    def compete(number):
        holder = msgspec.structs.replace(ELSEWHERE, job=f"9_{number}")
        barrier.wait()
        got.append(attempts.begin(stem, holder))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compete, range(8)))
    assert len([each for each in got if each]) == 1


def test_it_is_hopeless_after_two_failures_and_says_the_last_reason(stem):
    for number, reason in enumerate(("first", "second"), 1):
        attempt = attempts.begin(stem, ME)
        assert attempt.number == number
        attempt.fail(Machine("epyc"), reason)
        attempt.release()  # which leaves what failed
    assert attempts.begin(stem, ME) is None
    past = attempts.past(stem)
    assert (past.is_hopeless, past.reason, past.running) == (True, "second", None)


def silent(stem, number, seconds):
    path = stem.with_name(f"{stem.name}.{number}")
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_who_gives_no_sign_of_life_loses_it(stem):
    lost = attempts.begin(stem, ELSEWHERE)
    silent(stem, 1, attempts.SILENCE - 30)
    assert attempts.begin(stem, ME) is None
    silent(stem, 1, attempts.SILENCE)
    mine = attempts.begin(stem, ME)
    assert mine.number == 2
    assert not lost.is_mine()
    lost.release()
    assert mine.is_mine()
    assert [holder.host for holder in attempts.past(stem).losses] == ["another"]


def test_three_that_vanish_are_enough(stem):
    for number in (1, 2, 3):
        assert attempts.begin(stem, ELSEWHERE).number == number
        silent(stem, number, 2 * attempts.SILENCE)
    assert attempts.begin(stem, ME) is None
    assert attempts.past(stem).reason == f"3 jobs ended while it ran, on {', '.join([ME.node] * 3)}"


@pytest.mark.parametrize(
    "dead",
    [{"host": "another"}, {"pid": 2**22 + 1, "job": ""}],
    ids=["an earlier life of the same job", "a process of this host that is gone"],
)
def test_who_cannot_live_is_dead_at_once(stem, dead):
    attempts.begin(stem, msgspec.structs.replace(ME, **dead))
    again = msgspec.structs.replace(ME, life="1")
    assert attempts.begin(stem, again).number == 2


def test_a_file_of_which_nothing_arrived_counts_as_a_try(stem):
    stem.parent.mkdir(parents=True)
    stem.with_name(f"{stem.name}.1").touch()
    assert attempts.begin(stem, ME) is None
    silent(stem, 1, 2 * attempts.SILENCE)
    assert attempts.begin(stem, ME).number == 2


def test_a_sign_of_life_is_given_when_it_is_due(stem, monkeypatch):
    mine = attempts.begin(stem, ME)
    silent(stem, 1, 100)
    before = mine.path.stat().st_mtime
    assert mine.is_mine()
    assert mine.path.stat().st_mtime == before
    monkeypatch.setattr(attempts, "BEAT", 0.0)
    assert mine.is_mine()
    assert mine.path.stat().st_mtime > before
