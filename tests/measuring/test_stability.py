"""Stability measured: stable and unstable strategies, refusals, results that do not repeat."""

import pytest
import torch

from strategies import linalg, operations
from strategies.measuring.case import Case
from strategies.measuring.measurement import Status
from strategies.measuring.stability import judged_cells, measure_stability
from strategies.policy.schema import WORST_RATIO


def one(text, name):
    return measure_stability(Case.parse(text), [name]).strategies[0]


def test_a_stable_strategy_is_told_from_one_that_squares_the_condition():
    case = "pinv 16x4 cond=1e6 G=last_singular_vector seed=1"
    assert one(case, "qr_pinv").stability.worst < 30
    assert one(case, "explicit_inverse").stability.worst > 1e4


def test_pytorchs_lstsq_gradient_is_unstable_and_ours_is_not():
    case = Case.parse("lstsq 16x4 cond=1e6 B=image G=gram seed=1")
    cell = measure_stability(case, ["native", "qr_pinv", "triangular_solve"])
    assert cell.get("native").stability.gradient > 1e6
    for name in ("qr_pinv", "triangular_solve"):
        assert cell.get(name).stability.worst < 30


@pytest.mark.parametrize(
    ("case", "limit"),
    [
        # A cotangent of 2^768 that is not read moves the first columns by as much when it is rounded.
        ("lu 12x12 matrix=random_condition_root G=one_entry scale=2^768 float64 seed=969537148", 1),
        # The gradient is near the end of the exponent range.
        ("det 27x27 rank=24 scale=2^25 complex128 seed=1799460893", 100),
        # |det A| is 1 - 2^-24; at each of the first four perturbations two roundings cancel each other.
        ("slogdet 3x2x2 matrix=graded_columns scale=2^6 float32 seed=123551301", 10),
    ],
)
def test_what_rounding_does_is_no_instability(case, limit):
    name = "triangular_solve" if case.startswith("lu") else "native"
    assert 0 < one(case, name).stability.worst < limit


@pytest.mark.parametrize("operation", operations.names())
def test_every_operation_is_judged_single_and_batched(operation):
    k = " k=2" if operations.get(operation).arity == 2 else ""
    for size in ("5x5", "3x5x5"):
        for dtype in ("float32", "complex128"):
            found = one(f"{operation} {size}{k} {dtype} seed=3", "triangular_solve")
            assert found.status is Status.OK
            assert 0 < found.stability.gradient < 50


def test_a_refusal_is_not_applicable():
    found = one("pinv 6x4 rank=2", "triangular_solve")
    assert (found.status, found.stability) == (Status.NOT_APPLICABLE, None)
    assert "rank" in found.note


@pytest.mark.parametrize(
    ("factors", "note"),
    [
        ([1.0, 1 + 1e-12], "identical calls give different results"),
        ([torch.nan, 0.0], "identical calls give different results"),
        ([torch.nan, torch.nan], ""),
    ],
)
def test_results_that_do_not_repeat_or_are_none_have_the_worst_ratio(monkeypatch, factors, note):
    plain, record, left = linalg.inv, operations.get("inv"), iter(factors)

    def inv(A, *, strategy):
        return plain(A, strategy="native") * next(left)

    changed = operations.Operation(**{**vars(record), "function": inv})
    monkeypatch.setattr(operations, "get", lambda _: changed)
    found = one("inv 3x3", "native")
    assert (found.stability.result, found.note) == (WORST_RATIO, note)


def test_what_cannot_be_judged_says_why_and_is_left_out():
    lost = Case.parse("inv 2x2 float32 matrix=near_underflow")
    with pytest.raises(ValueError, match="cannot hold"):
        measure_stability(lost, ["native"])
    kept = Case.parse("inv 2x2")
    assert [cell.case for cell in judged_cells([lost, kept], ["native"])] == [kept]


def test_a_determinant_that_rounding_takes_out_of_range_is_not_judged():
    # It is zero, and 1e66 after rounding any of these entries: infinite in single precision.
    lost = Case.parse("det 31x31 rank=26 scale=2^2 complex64 seed=750414480")
    assert not list(judged_cells([lost], ["native"]))


def test_an_error_of_a_strategy_does_not_take_its_case_from_the_evidence():
    def broken(_):
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        list(judged_cells([Case.parse("inv 2x2")], ["native"], {"broken": broken}))
