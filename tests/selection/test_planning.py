"""What is measured next, on a policy made by hand."""

import numpy as np
import pytest
from by_hand import STABLE, UNSTABLE, policy_cell, policy_of

from strategies.measuring.case import Case
from strategies.selection import planning
from strategies.selection.planning import Plan


def cell_of(case, **times):
    return policy_cell(*case.shape, case.rhs, case.batch, case.rank, **times)


def shipped(times, unstable=()):
    """A policy that says this of cases."""
    names = ("native", "triangular_solve", "explicit_inverse", "qr_pinv", "fused")
    stability = dict.fromkeys(names, STABLE) | dict.fromkeys(unstable, UNSTABLE)
    cells = {}
    for case, of in times.items():
        cells.setdefault(case.operation, []).append(cell_of(case, **of))
    return policy_of(stability=stability, **cells)


def inv(size, dtype="float64"):
    return Case.parse(f"inv {size}x{size} {dtype}")


CLEAR, CLOSE = {"fused": 1.0, "qr_pinv": 9.0}, {"fused": 1.0, "triangular_solve": 1.02}


def all_of(plan):
    """What a plan asks for, if every measurement says what was expected."""
    found = []
    while (case := plan.next()) is not None:
        found.append(case)
        cells = plan.shipped.operations[case.operation].cells["cpu"]["float64"]
        plan.add(case, next(cell for cell in cells if cell.m == case.shape[0]))
    return found


def test_every_operation_and_dtype_comes_first_and_in_turn():
    cases = [
        Case.parse(f"{name} {size}x{size} {dtype}")
        for name in ("inv", "det")
        for dtype in ("float64", "float32")
        for size in (2, 4, 8, 16, 32, 64, 128)
    ]
    asked = all_of(Plan(cases, shipped(dict.fromkeys(cases, CLEAR))))
    first = {(case.operation, case.dtype_name) for case in asked[:4]}
    assert len(first) == 4
    of_one = [case for case in asked if (case.operation, case.dtype_name) == ("inv", "float64")]
    assert {case.shape[0] for case in of_one[:3]} == {16, 2, 128}


def test_where_all_is_clear_it_ends_with_the_cover():
    cases = [inv(2**i) for i in range(1, 10)]
    assert len(all_of(Plan(cases, shipped(dict.fromkeys(cases, CLEAR))))) == planning.COVER


def test_where_strategies_cross_it_goes_on():
    cases = [inv(2**i) for i in range(1, 10)]
    crossing = {case: (CLOSE if case.shape[0] in (16, 32, 64) else CLEAR) for case in cases}
    asked = all_of(Plan(cases, shipped(crossing)))
    assert {case.shape[0] for case in asked} >= {16, 32, 64}
    assert len(asked) < len(cases)


def test_what_contradicts_the_policy_near_by_is_a_reason_to_go_on():
    cases = [inv(2**i) for i in range(1, 10)]
    times = {"fused": 1.0, "triangular_solve": 1.8}
    plan = Plan(cases, shipped(dict.fromkeys(cases, times)))
    for _ in range(planning.COVER):
        case = plan.next()
        plan.add(case, cell_of(case, fused=1.0, triangular_solve=1.05))
    assert plan.next() is not None


def test_only_stable_strategies_that_may_win_are_measured():
    times = {"fused": 1.2, "triangular_solve": 1.0, "qr_pinv": 3.0, "explicit_inverse": 40.0}
    plan = Plan([inv(8)], shipped({inv(8): times}, unstable=["qr_pinv", "native"]))
    assert plan.contenders(inv(8)) == ["triangular_solve", "fused"]


def test_what_is_clearly_the_fastest_is_measured_beside_the_next():
    assert Plan([inv(8)], shipped({inv(8): CLEAR})).contenders(inv(8)) == ["fused", "qr_pinv"]


def test_the_shipped_choice_is_measured_even_where_it_does_badly():
    cases = [inv(2**i) for i in range(1, 8)]
    times = {"triangular_solve": 1.0, "fused": 1.1, "explicit_inverse": 1.2}
    plan = Plan(cases, shipped(dict.fromkeys(cases, times)))
    for _ in range(planning.COVER):
        case = plan.next()
        plan.add(case, cell_of(case, fused=1.0, explicit_inverse=1.1, triangular_solve=9.0))
    assert plan.contenders(plan.next()) == ["triangular_solve", "fused", "explicit_inverse"]


def test_where_nothing_was_shipped_all_stable_strategies_are_measured():
    case = Case.parse("inv 8x8 cuda")
    plan = Plan([case], shipped({inv(8): CLEAR}, unstable=["native"]))
    assert {"triangular_solve", "explicit_inverse"} <= set(plan.contenders(plan.next()))
    assert "native" not in plan.contenders(case)


def test_the_cases_of_a_program_are_all_measured_with_native_for_comparison():
    cases = [inv(8), inv(8, "complex64"), Case.parse("det 3x3")]
    plan = Plan(cases, shipped({inv(8): CLEAR}), all_of_them=True)
    asked = []
    while (case := plan.next()) is not None:
        asked.append(case)
        assert plan.contenders(case)[0] == "native"
        plan.add(case, None)
    assert asked == cases


@pytest.mark.parametrize(("margin", "doubt"), [(0.0, 0.3), (0.1, 0.3), (0.6, 0.2)])
def test_the_expected_loss_is_the_mean_over_what_may_be(margin, doubt):
    drawn = np.random.default_rng(0).normal(margin, doubt, 2_000_000)
    expected = np.maximum(-drawn, 0).mean()
    assert planning._expected_loss(margin, doubt) == pytest.approx(expected, rel=0.02)
