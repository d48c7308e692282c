"""From what `recommend` says to the numbers in the file that it names."""

import math
from pathlib import Path

import pytest

from strategies.measuring.measurement import Objective
from strategies.measuring.store import load
from strategies.selection import recommendation
from strategies.selection.eligibility import Criteria
from strategies.selection.verdicts import judge


@pytest.fixture(scope="module")
def runs():
    return load(Path(__file__).parents[2] / "results" / "epyc-2cores" / "grid", "grid")


@pytest.fixture
def cells(runs):
    return judge(runs)


def test_every_number_is_in_the_file_that_is_named(cells, runs):
    kept = {run.path: {cell.case: cell for cell in run.cells} for run in runs}
    for cell, said in zip(cells, recommendation.as_json(cells, Criteria())["cells"], strict=True):
        in_file = kept[said["source"]][cell.case]
        for each in said["strategies"]:
            measured = in_file.get(each["strategy"])
            for name in ("forward_backward", "error", "peak_bytes"):
                assert each[name] == getattr(measured, name)


def test_the_verdict_follows_from_those_numbers(cells):
    for cell in cells:
        costs = {
            each.strategy: each.measurement.cost(Objective.FORWARD_BACKWARD).seconds
            for each in cell.judged
            if each.is_eligible
        }
        for each in cell.judged:
            if each.is_eligible:
                assert math.isclose(each.ratio, costs[each.strategy] / min(costs.values()))
        assert cell.chosen.ratio <= 1.1
