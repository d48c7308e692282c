"""Measurements made by hand."""

from pathlib import Path

import pytest

from strategies.measuring.case import Case
from strategies.measuring.machine import Machine
from strategies.measuring.measurement import Cell, Measurement, Objective, Timing
from strategies.store import Run

MACHINE = Machine("here", cpu="a processor", started_at="2026-11-20T10:00:00+00:00")


def make_timing(seconds, spread=1.0, halves=None):
    return Timing(seconds, seconds / spread, seconds * spread, halves or (seconds, seconds))


def make_measurement(
    strategy, seconds=None, spread=1.0, *, halves=None, by=Objective.FORWARD_BACKWARD, **others
):
    """A strategy whose time is known within a factor of `spread`."""
    cost = {} if seconds is None else {by.value: make_timing(seconds, spread, halves)}
    return Measurement(strategy, **{"error": 1e-15, **cost, **others})


def make_cell(*measurements, case="pinv 64x8"):
    return Cell(Case.parse(case), measurements)


def make_run(*cells, kind="grid", machine=MACHINE, path="here/run.json"):
    return Run(kind, machine, {}, cells, path)


@pytest.fixture
def took():
    return make_measurement


@pytest.fixture
def cell_of():
    return make_cell


@pytest.fixture
def run_of():
    return make_run


@pytest.fixture
def results():
    """Kept results of a whole grid, forward and backward together."""
    return Path(__file__).parents[2] / "results" / "epyc-2cores" / "forward_backward"
