"""The work of each strategy is what was pinned, whatever the machine is busy with."""

import warnings

import pytest

from benchmarks import work_pins
from strategies import registry

RELEASE, PINNED = work_pins.pins()
OPERATIONS = sorted({label.split()[0] for label in PINNED})


@pytest.mark.skipif(work_pins.release() != RELEASE, reason=f"work is pinned for PyTorch {RELEASE}")
@pytest.mark.parametrize("strategy", registry.built_in())
@pytest.mark.parametrize("operation", OPERATIONS)
def test_work_has_not_grown(operation, strategy):
    grown, shrunk = [], []
    for case in work_pins.cases(operation):
        pinned = PINNED.get(case.label, {}).get(strategy)
        assert pinned is not None, f"{case.label}, {strategy} is not pinned: {work_pins.UPDATE}"
        counted = work_pins.count(case, strategy)
        where = f"{case.label}, {strategy}"
        grown += [f"{where}: {what}" for what in work_pins.growth(pinned, counted)]
        shrunk += [f"{where}: {what}" for what in work_pins.growth(counted, pinned)]
    assert not grown, "\n".join([*grown, f"if that is meant to be: {work_pins.UPDATE}"])
    if shrunk:
        warnings.warn(f"less work than pinned, pin it: {work_pins.UPDATE}", stacklevel=1)


def test_growth_names_what_grew():
    pinned = {"flops": 100, "calls": 3, "peak_bytes": 1000}
    counted = {"flops": 150, "calls": 3, "peak_bytes": 1010}
    assert work_pins.growth(pinned, counted) == ["flops grew from 100 to 150 (1.50×)"]


def test_a_case_that_is_refused_all_at_once_is_a_regression():
    assert work_pins.growth({"flops": 100}, {}) == ["the case is refused, and was not"]
    assert work_pins.growth({}, {"flops": 100}) == []
