import itertools
import os
import subprocess
import sys

import pytest

from strategies.measuring import Machine
from strategies.measuring import noise as module


def test_a_neighbour_on_every_core_is_contention():
    spin = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    count = 2 * (os.cpu_count() or 1)
    neighbours = [subprocess.Popen(spin, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for each in neighbours:
            each.stdout.readline()
        assert max(module.contention() for _ in range(20)) > module.BUSY
    finally:
        for each in neighbours:
            each.kill()
            each.communicate()


@pytest.mark.parametrize(("times", "expected"), [([1.0], 1.0), ([1.0, 1.0, 2.0, 1.0], 2**0.5)])
def test_it_is_the_factor_by_which_equal_work_differs(monkeypatch, times, expected):
    taken = itertools.cycle(times)
    monkeypatch.setattr(module, "sampler", lambda work: lambda: next(taken))
    assert module.timing_noise() == pytest.approx(expected)


def test_a_machine_says_how_busy_and_how_noisy_it_is(monkeypatch):
    monkeypatch.setattr(module, "load", lambda: 1 / 3)
    monkeypatch.setattr(module, "timing_noise", lambda: 1.01239)
    monkeypatch.setattr(module, "contention", lambda: 1.2)
    assert module.with_load_and_noise(Machine("here", cpu="abacus")) == Machine(
        "here", cpu="abacus", load=0.333, noise=1.012
    )


def test_the_load_is_that_of_a_core(monkeypatch):
    monkeypatch.setattr(module.os, "getloadavg", lambda: (3.0, 0.0, 0.0), raising=False)
    monkeypatch.setattr(module.os, "cpu_count", lambda: 2)
    assert module.load() == 1.5
