"""From measurements made by hand to a part of a calibration."""

import functools

import pytest
from by_hand import STABLE, UNSTABLE, cell, cell_of, policy_cell, policy_of, took

from strategies.measuring import Case, Machine, Measurement, Status, Timing, store
from strategies.policy.schema import Policy
from strategies.selection import calibrating
from strategies.selection.planning import Plan

SHIPPED = policy_of(
    inv=[policy_cell(8, a=1.0, b=2.0), policy_cell(64, a=1.0, b=1.1)],
    stability={"a": STABLE, "b": STABLE, "native": UNSTABLE},
)

measured = functools.partial(cell_of, case="inv 8x8")


def test_a_clear_measurement_is_taken_as_it_is():
    found = calibrating.decided(measured(took("a", 3.0), took("b", 1.0)), SHIPPED)
    assert (found.use, found.times["b"]) == ("b", 1.0)
    assert found.times["a"] == pytest.approx(3.0, rel=0.03)


def test_an_uncertain_one_changes_little():
    found = calibrating.decided(measured(took("b", 1.0), took("a", 1.1, spread=8.0)), SHIPPED)
    assert found.use == "a"
    assert found.times["b"] == pytest.approx(2.0, rel=0.05)


def test_what_is_unstable_or_failed_is_not_used():
    found = measured(took("native", 0.1), took("a", 1.0), Measurement("b", Status.FAILED))
    assert calibrating.decided(found, SHIPPED).times == {"a": 1.0}
    assert calibrating.decided(measured(took("native", 0.1)), SHIPPED) is None


CASES = [Case.parse(f"inv {size}x{size}") for size in (4, 8, 16, 64)]


def test_it_measures_until_the_time_is_up(tmp_path, monkeypatch):
    asked = []

    def race(case, names, *, budget):
        asked.append(case)
        return cell(str(case), a=2.0, b=1.0)

    monkeypatch.setattr(calibrating, "race", race)
    clock = iter(range(100))
    writer = store.Writer(tmp_path / "draft.json", "calibration", {}, Machine("here", threads=1))
    found = calibrating.measured(Plan(CASES, SHIPPED), writer, 2.5, clock=lambda: next(clock))
    assert len(found) == len(asked) == 2
    assert [cell.case for cell in store.load(writer.path)[0].cells] == asked


def test_a_part_holds_what_was_decided():
    good = cell("inv 8x8", a=3.0, b=1.0)
    bad = cell("inv 16x16", native=1.0)
    judged = {"inv": {"b": STABLE}}
    part = calibrating.part([good, bad], SHIPPED, judged, Machine("here", threads=3), "cpu")
    assert (part.threads, part.stability, part.device) == (3, judged, "cpu")
    ((found,),) = (by["float64"] for by in part.cells.values())
    assert (found.m, found.use) == (8, "b")


def test_an_operation_is_kept_where_its_measurements_answer():
    known = Policy(operations={"det": SHIPPED.operations["inv"]})
    found = cell("slogdet 8x8", a=3.0, b=1.0)
    part = calibrating.part([found], known, {}, Machine("here", threads=1), "cpu")
    assert list(part.cells) == ["det"]


def test_a_gain_is_judged_by_other_rounds_than_the_choice(monkeypatch):
    monkeypatch.setattr(calibrating, "choice_in", lambda cell, policy: policy)
    lucky = Measurement("b", forward_backward=Timing(1.0, 0.5, 2.0, (0.5, 2.0)))
    found = measured(Measurement("a", forward_backward=Timing(1.0, 0.9, 1.1, (1.0, 1.0))), lucky)
    (change,) = calibrating.changes([found], "a", "b")
    assert change.gain == pytest.approx(1.0)
    assert list(calibrating.changes([found], "a", "never_measured")) == []


def test_the_check_judges_what_is_used_of_every_operation():
    used = {"inv": ["fused"], "det": ["triangular_solve"]}
    found = calibrating.checked(used, "cpu", ["float64"], 0.0)
    assert {name: list(by) for name, by in found.items()} == {
        name: list(names) for name, names in used.items()
    }
    assert all(each.judged + each.refused for by in found.values() for each in by.values())
    assert calibrating.checked({}, "cpu", ["float64"], 1.0) == {}
