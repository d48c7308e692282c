import pytest
from by_hand import timing

from benchmarks.programs import program as shared
from benchmarks.training.choices import Choice
from benchmarks.training.results import Result, Way
from strategies.measuring.machine import Machine


@pytest.fixture
def tiny(monkeypatch):
    """All programs in sizes at which a step takes a millisecond."""
    sizes = {"gp": {"points": 10}, "elastic": {"cells": 1}}
    step = shared.Program.step
    monkeypatch.setattr(
        shared.Program, "step", lambda self, size="small": step(self, size, **sizes[self.name])
    )


@pytest.fixture
def result():
    """The Gaussian process: twice as fast by "auto", in half of the memory."""
    return Result(
        program="gp",
        size="small",
        machine=Machine("reference-machine", started_at="2023-11-14T22:13:20+00:00"),
        torch=Way("torch", timing(4e-3, 1.1), 4000, (1.0, 0.5)),
        auto=Way("auto", timing(2e-3, 1.1), 2000, (1.0, 0.4)),
        tuned=Way("blocked_lu", timing(1e-3, 1.1), 1000),
        forward=0.25,
        backward=0.5,
        choices=(Choice("cholesky 9x9 float64 cpu", 1.0, "fused", "blocked_lu", 1.2, 2.0),),
    )
