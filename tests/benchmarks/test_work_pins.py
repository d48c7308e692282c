"""The work of each strategy is what was pinned, whatever the machine is busy with."""

import warnings

import pytest
import torch

from benchmarks import work_pins
from strategies import operations
from strategies.measuring.measurement import Measurement, Status
from strategies.policy.nearest_machine import minor

RUN = work_pins.pins()
PINNED = {cell.case: cell for cell in RUN.cells}


@pytest.mark.skipif(
    minor(torch.__version__) != minor(RUN.machine.torch),
    reason=f"work is pinned for PyTorch {RUN.machine.torch}",
)
@pytest.mark.parametrize("operation", operations.names())
def test_work_has_not_grown(operation):
    grown, shrunk = [], []
    for case in work_pins.cases(operation):
        for counted in work_pins.count(case):
            where = f"{case}, {counted.strategy}"
            pinned = PINNED[case].get(counted.strategy) if case in PINNED else None
            assert pinned is not None, f"{where} is not pinned: {work_pins.UPDATE}"
            grown += [f"{where}: {what}" for what in work_pins.growth(pinned, counted)]
            shrunk += [f"{where}: {what}" for what in work_pins.growth(counted, pinned)]
    assert not grown, "\n".join([*grown, f"if that is meant to be: {work_pins.UPDATE}"])
    if shrunk:
        warnings.warn(f"less work than pinned, pin it: {work_pins.UPDATE}", stacklevel=1)


def test_growth_names_what_grew():
    pinned = Measurement("x", flops=100, calls=3, peak_bytes=1000)
    counted = Measurement("x", flops=150, calls=3, peak_bytes=1010)
    assert work_pins.growth(pinned, counted) == ["flops grew from 100 to 150 (1.50×)"]


def test_a_case_that_is_refused_all_at_once_is_a_regression():
    refused, pinned = Measurement("x", Status.NOT_APPLICABLE), Measurement("x", flops=100)
    assert work_pins.growth(pinned, refused) == ["the case is refused, and was not"]
    assert work_pins.growth(refused, pinned) == []
