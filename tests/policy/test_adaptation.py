"""What few measurements make of the shipped policy."""

import math

import pytest
from by_hand import part_of, policy_of, ranking_of
from by_hand import policy_cell as cell

from strategies.policy.adaptation import REACH, adapt, adapt_cells
from strategies.policy.schema import Evidence


def by_size(cells):
    return {each.m: each for each in cells}


SHIPPED = [cell(size, a=1.0, b=1.5) for size in (2, 4, 8, 16, 1024)]


def test_what_was_measured_is_answered_by_that_and_changes_what_is_near_but_not_far_away():
    measured = cell(8, b=1.0, a=2.0)
    found = by_size(adapt_cells(SHIPPED, [measured]))
    assert found[8] == measured
    assert len(found) == len(SHIPPED)
    assert found[4].use == found[16].use == "b"
    assert found[1024].use == "a"
    # The change of a over b is by 2 / (1 / 1.5) = 3, of which a weight of 1 / (1 + (d / REACH)²) counts.
    distance = math.sqrt(2) * math.log2(1024 / 8)
    expected = 1.5 / 3 ** (1 / (1 + (distance / REACH) ** 2))
    assert found[1024].times["b"] == pytest.approx(expected, rel=1e-3)


def test_what_agrees_with_what_was_shipped_changes_nothing():
    assert by_size(adapt_cells(SHIPPED, [cell(8, a=1.0, b=1.5)])) == by_size(SHIPPED)


def test_a_dtype_that_was_not_shipped_begins_as_the_next_one():
    shipped = policy_of(inv=SHIPPED)
    measured = cell(8, b=1.0, a=2.0)
    found = adapt(shipped, part_of({"inv": {"complex128": (measured,)}}))
    assert ranking_of(found, "inv", 8, 8, dtype="complex128")[0] == "b"
    assert ranking_of(found, "inv", 1024, 1024, dtype="complex128")[0] == "a"
    assert ranking_of(found, "inv", 8, 8, dtype="float64")[0] == "a"


def test_deficient_matrices_have_cells_of_their_own():
    known = cell(8, a=1.0, b=1.5), cell(8, rank=4, a=1.0, b=1.5)
    shipped = policy_of(inv=known)
    found = adapt(shipped, part_of({"inv": {"float64": (cell(8, rank=4, b=1.0, a=3.0),)}}))
    cells = found.operations["inv"].cells["cpu"]["float64"]
    assert {each.rank: each.use for each in cells} == {None: "a", 4: "b"}


def test_a_device_or_an_operation_that_was_not_shipped_has_what_was_measured():
    shipped = policy_of(inv=SHIPPED)
    measured = {"float64": (cell(8, b=1.0, a=2.0),)}
    found = adapt(shipped, part_of({"inv": measured, "qr": measured}, device="cuda"))
    assert ranking_of(found, "inv", 512, 512, device="cuda:0")[0] == "b"
    assert ranking_of(found, "inv", 8, 8)[0] == "a"
    assert ranking_of(found, "qr", 9, 9, device="cuda")[0] == "b"


def test_what_is_unstable_here_is_not_used_and_what_is_stable_here_stays_judged_by_more():
    known = {"a": Evidence(300, 0, 5.0, "inv 2x2"), "b": Evidence(300, 0, 5.0, "inv 2x2")}
    shipped = policy_of(inv=SHIPPED, stability=known)
    here = {"inv": {"a": Evidence(4, 0, 1e6, "inv 3x3"), "b": Evidence(4, 0, 1.0, "inv 3x3")}}
    found = adapt(shipped, part_of({}, stability=here))
    assert ranking_of(found, "inv", 4, 4) == ("b",)
    assert found.operations["inv"].stability["b"] == known["b"]


def test_it_says_where_it_was_measured():
    machine = {"name": "here"}
    assert adapt(policy_of(), part_of({}, machine=machine)).provenance == (machine,)
