"""Measurements made by hand."""

from pathlib import Path

import pytest
from by_hand import timing

from strategies import operations, registry
from strategies.measuring.case import Case
from strategies.measuring.machine import Machine
from strategies.measuring.measurement import Cell, Measurement, Objective, Stability
from strategies.measuring.store import Run
from strategies.policy.schema import Evidence
from strategies.selection import stability

MACHINE = Machine("here", cpu="a processor", started_at="2026-11-20T10:00:00+00:00")


def make_measurement(
    strategy, seconds=None, spread=1.0, *, halves=None, by=Objective.FORWARD_BACKWARD, **others
):
    """A strategy whose time is known within a factor of `spread`."""
    cost = {} if seconds is None else {by.value: timing(seconds, spread, halves)}
    return Measurement(strategy, **{"error": 1e-15, **cost, **others})


def make_cell(*measurements, case="pinv 64x8"):
    return Cell(Case.parse(case), measurements)


def make_run(*cells, kind="grid", machine=MACHINE, path="here/run.json"):
    return Run(kind, machine, {}, cells, path)


def make_stable_cell(case, **ratios):
    """A hard case in which each strategy has that stability ratio."""
    measured = (Measurement(name, stability=Stability(0, 0, r, 0)) for name, r in ratios.items())
    return Cell(Case.parse(case), tuple(measured))


@pytest.fixture
def stable_cell_of():
    return make_stable_cell


@pytest.fixture(autouse=True)
def _all_are_stable(monkeypatch):
    """Where no stability is measured, all strategies are known to be stable."""
    names = [*registry.available(), "a_stranger"]
    known = dict.fromkeys(names, Evidence(1, 0, 1.0, "inv 2x2"))
    monkeypatch.setattr(stability, "_shipped", lambda: dict.fromkeys(operations.names(), known))


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
    """Kept results of a whole grid."""
    return Path(__file__).parents[2] / "results" / "epyc-2cores" / "grid"
