import sys

import pytest

from strategies.measuring import Case, Objective, Status, Timing
from strategies.measuring.measure import TIMED, measure, prepare

MODULE = sys.modules["strategies.measuring.measure"]  # the package's attribute is the function


@pytest.fixture(autouse=True)
def no_time(monkeypatch):
    """Nothing is timed: everything takes a second."""

    def interleaved(samplers, budget):
        return {name: Timing(1.0, 1.0, 1.0, (1.0, 1.0)) for name in samplers}

    monkeypatch.setattr(MODULE, "sampler", lambda call: call)
    monkeypatch.setattr(MODULE, "interleaved", interleaved)


def test_a_case_is_measured_with_every_strategy():
    begun = []
    cell = measure(Case("pinv", (12, 4)), ["native", "triangular_solve"], begins=begun.append)
    assert begun == ["native", "triangular_solve", *TIMED]
    assert [each.strategy for each in cell] == ["native", "triangular_solve"]
    for each in cell:
        assert each.status is Status.OK
        assert each.error < 1e-13
        assert each.peak_bytes > 0
        assert each.backward.seconds == each.forward_backward.seconds == 1.0


def test_without_objectives_errors_and_memory_are_all_that_is_measured():
    (each,) = measure(Case("inv", (4, 4)), ["native"], objectives=())
    assert each.error < 1e-13
    assert each.peak_bytes > 0
    assert each.backward is each.forward_backward is None


def test_others_are_timed_in_the_same_rounds():
    others = {"library": {Objective.BACKWARD: lambda: 1.0}}
    cell = measure(Case("inv", (4, 4)), ["native"], objectives=[Objective.BACKWARD], others=others)
    assert cell.get("library").backward.seconds == 1.0
    assert cell.get("library").error is None


def test_what_a_strategy_refuses_is_not_applicable_and_says_why():
    cell = measure(Case("pinv", (12, 4), rank=2), ["native", "triangular_solve"])
    refused = cell.get("triangular_solve")
    assert refused.status is Status.NOT_APPLICABLE
    assert "full rank" in refused.note
    assert refused.backward is None
    assert cell.get("native").status is Status.OK


def test_native_is_not_asked_for_what_it_has_no_memory_for():
    _, found = prepare(Case("pinv", (40_000, 2)), ["native", "triangular_solve"])
    assert [each.status for each in found.values()] == ["n/a", "ok"]


@pytest.mark.parametrize("error", [RuntimeError("cuBLAS\nbroke"), MemoryError()])
def test_what_breaks_has_failed(error):
    def broken(case, name):
        raise error

    runnable, found = prepare(Case("inv", (4, 4)), ["native"], made=broken)
    assert not runnable
    assert found["native"].status is Status.FAILED
    assert found["native"].note in ("cuBLAS", "MemoryError")


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="there is no device cuda:99 here"):
        measure(Case("inv", (4, 4), device="cuda:99"), ["native"])
