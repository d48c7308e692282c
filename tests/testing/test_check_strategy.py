import dataclasses

import pytest
import torch

import strategies
from strategies import operations
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import LinAlgError
from strategies.testing import (
    ConformanceError,
    Outcome,
    Report,
    Status,
    check_strategy,
    checks,
    outcome_of,
)
from strategies.testing.global_state import changed, preserved, snapshot


# That of "fused" is the docstring's example, too.
@pytest.mark.slow
@pytest.mark.parametrize("name", strategies.available())
def test_every_registered_strategy_passes(name, device):
    check_strategy(strategies.get(name), device).raise_if_failed()


def test_everything_is_made_on_the_device_and_failures_are_raised():
    made = []

    class Watched(TriangularSolve):
        name = "watched"
        summary = "two\nlines"

        def factor_tall(self, matrix, **_):
            made.append(matrix.device.type)
            raise LinAlgError("seen")

        def lu_backward(self, factors, cotangent):
            made.extend(tensor.device.type for tensor in (*factors, cotangent))
            raise LinAlgError("seen")

    report = check_strategy(Watched, "meta")
    assert set(made) == {"meta"}
    assert report.strategy == "watched"
    assert "declaration" in {failure.check for failure in report.failures}
    with pytest.raises(ConformanceError, match="one line"):
        report.raise_if_failed()


def outcome(name, strategy):
    """Of the check of that name."""
    (check,) = (check for check in checks() if check.name == name)
    return outcome_of(check, strategy)


def test_a_check_of_what_a_strategy_does_not_do_is_not_applicable():
    found = outcome("mixed ranks in a batch", TriangularSolve())
    assert found.status is Status.NOT_APPLICABLE


def test_what_is_no_strategy_is_named():
    with pytest.raises(TypeError, match="'native'"):
        check_strategy("native")


def test_an_operation_that_is_added_is_checked_too():
    with operations.registered(dataclasses.replace(operations.get("inv"), name="toy")):
        of_toy = [check for check in checks() if check.name.endswith(" toy")]
        assert {"gradient of toy", "sizes of toy", "scales of toy"} <= {c.name for c in of_toy}
        for check in of_toy:
            assert outcome_of(check, TriangularSolve()).status is Status.PASSED


PASSED = Outcome("apply", Status.PASSED)


def test_the_report_names_check_and_fault():
    report = Report("mine", (Outcome("rank", Status.FAILED, "off by 3"), PASSED))
    assert str(report) == "strategy 'mine': 1 of 2 checks failed\nrank\n    off by 3"
    with pytest.raises(ConformanceError, match="off by 3"):
        report.raise_if_failed()


def test_what_is_not_applicable_is_counted_and_raises_nothing():
    report = Report("mine", (PASSED, Outcome("rank", Status.NOT_APPLICABLE, "no rank")))
    assert report.verdict == "passed, but 1 check is not applicable, of 2"
    report.raise_if_failed()


def test_a_note_does_not_fail():
    found = outcome("time", TriangularSolve())
    assert found.status is Status.PASSED
    assert "ms" in found.detail


def test_leaving_the_process_is_a_finding_and_ctrl_c_is_the_users():
    class Leaves(TriangularSolve):
        kind = SystemExit

        def factor_tall(self, matrix, **_):
            raise self.kind(0)

    found = outcome("dense", Leaves())
    assert found.status is Status.FAILED
    assert "SystemExit" in found.detail
    Leaves.kind = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        outcome("dense", Leaves())


def test_what_a_strategy_changes_is_told_and_set_back():
    before = snapshot()
    with preserved():
        torch.set_default_dtype(torch.float64)
        assert "the default dtype" in changed(before)
    assert not changed(before)
