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

USUAL = "fused", "svd_truncated_pinv"
"""The default, and one that takes any rank by other means."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in USUAL else [pytest.mark.slow])
        for name in strategies.available()
    ],
)
def test_every_registered_strategy_passes(name, device):
    check_strategy(strategies.get(name), device).raise_if_failed()


def test_everything_is_made_on_the_device():
    made = []

    class Watched(TriangularSolve):
        def factor_tall(self, matrix, **_):
            made.append(matrix.device.type)
            raise LinAlgError("seen")

        def lu_backward(self, factors, cotangent):
            made.extend(tensor.device.type for tensor in (*factors, cotangent))
            raise LinAlgError("seen")

    check_strategy(Watched, "meta")
    assert set(made) == {"meta"}


def test_a_class_is_made_into_an_instance_and_failures_are_raised():
    class Wrong(TriangularSolve):
        name = "wrong"
        summary = "two\nlines"

    report = check_strategy(Wrong)
    assert report.strategy == "wrong"
    assert [failure.check for failure in report.failures] == ["declaration"]
    statuses = {outcome.check: outcome.status for outcome in report.outcomes}
    assert statuses["mixed ranks in a batch"] is Status.NOT_APPLICABLE
    with pytest.raises(ConformanceError, match="one line"):
        report.raise_if_failed()


def test_what_is_no_strategy_is_named():
    with pytest.raises(TypeError, match="'native'"):
        check_strategy("native")


def test_an_operation_that_is_added_is_checked_too():
    with operations.registered(dataclasses.replace(operations.get("inv"), name="toy")):
        of_toy = [check for check in checks() if check.name.endswith(" toy")]
        assert {"gradient of toy", "sizes of toy", "scales of toy"} <= {c.name for c in of_toy}
        for check in of_toy:
            assert outcome_of(check, TriangularSolve()).status is Status.PASSED


def test_the_report_names_check_and_fault():
    report = Report(
        "mine", (Outcome("apply", Status.FAILED, "off by 3"), Outcome("rank", Status.PASSED))
    )
    assert str(report) == "strategy 'mine': 1 of 2 checks failed\napply\n    off by 3"
    with pytest.raises(ConformanceError, match="off by 3"):
        report.raise_if_failed()


def test_what_is_not_applicable_is_counted():
    outcomes = Outcome("apply", Status.PASSED), Outcome("rank", Status.NOT_APPLICABLE, "no rank")
    assert Report("mine", outcomes).verdict == "passed, but 1 check is not applicable, of 2"


def test_a_note_does_not_fail():
    (check,) = (check for check in checks() if check.name == "time")
    outcome = outcome_of(check, TriangularSolve())
    assert outcome.status is Status.PASSED
    assert "ms" in outcome.detail


def test_leaving_the_process_is_a_finding_and_ctrl_c_is_the_users():
    class Leaves(TriangularSolve):
        kind = SystemExit

        def factor_tall(self, matrix, **_):
            raise self.kind(0)

    (check,) = (check for check in checks() if check.name == "dense")
    outcome = outcome_of(check, Leaves())
    assert outcome.status is Status.FAILED
    assert "SystemExit" in outcome.detail
    Leaves.kind = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        outcome_of(check, Leaves())


def test_nothing_is_raised_when_all_is_in_order():
    Report("mine", (Outcome("apply", Status.PASSED),)).raise_if_failed()


def test_what_a_strategy_changes_is_told_and_set_back():
    before = snapshot()
    with preserved():
        torch.set_default_dtype(torch.float64)
        assert "the default dtype" in changed(before)
    assert not changed(before)
