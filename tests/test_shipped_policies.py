"""The policies in the package, against the measurements that are kept beside it."""

import json
from pathlib import Path

import pytest

import strategies
from strategies import policy as policies
from strategies.selection import policy_building, regret, rows
from strategies.selection.verdicts import Criteria, Objective

KEPT = Path(__file__).parents[1] / "results" / "epyc-2cores"
BY_BOTH = Path(policies.__file__).with_name("policy.json")


def cases(name):
    return json.loads((KEPT / "regret" / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def score(path, measured):
    return regret.score(measured, policy_building.read(path), strategies.available())


DRAWS = [
    (BY_BOTH, "forward_backward"),
    (BY_BOTH, "forward_backward-seed-1"),
    (policies.BY_BACKWARD, "backward"),
    (policies.BY_BACKWARD, "backward-seed-1"),
]


@pytest.mark.parametrize(
    ("path", "folder", "objective"),
    [
        (BY_BOTH, "rounds", Objective.FORWARD_BACKWARD),
        (policies.BY_BACKWARD, "backward", Objective.BACKWARD),
    ],
)
def test_they_are_what_the_kept_measurements_say(path, folder, objective):
    measured = rows.load(KEPT / folder)
    built = policy_building.build(measured, strategies.available(), Criteria(objective))
    assert json.loads(json.dumps(built)) == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("path", "draw"), DRAWS)
def test_they_choose_well_in_150_cases_that_were_not_measured_for_them(path, draw):
    found = regret.summary(score(path, cases(draw))).loc["policy"]
    assert found["cases"] >= 150
    assert found["median"] <= 1.03
    assert found["p95"] <= 1.3
    assert found["worst"] <= 2


@pytest.mark.parametrize(
    ("path", "draws", "most", "by"),
    [
        (policies.BY_BACKWARD, ("backward", "backward-seed-1"), 1, 1.2),
        (BY_BOTH, ("forward_backward", "forward_backward-seed-1"), 7, 1.5),
    ],
)
def test_native_is_rarely_faster_and_not_by_much(path, draws, most, by):
    slower = regret.slower_than_native(
        score(path, [case for draw in draws for case in cases(draw)])
    )
    assert len(slower) <= most
    assert (slower["over_native"] >= 1 / by).all()


def test_the_backward_is_twice_as_fast_as_native_over_both_draws():
    both = cases("backward") + cases("backward-seed-1")
    assert regret.summary(score(policies.BY_BACKWARD, both)).loc["policy", "over_native"] >= 2


def test_one_is_used_by_default_and_the_other_when_asked_for():
    sizes = {"rhs": 1, "batch": 0, "dtype": "float64", "device": "cpu"}
    (both,) = policies.candidates("solve", 512, 512, **sizes)
    with policies.use(policies.BY_BACKWARD):
        (backward,) = policies.candidates("solve", 512, 512, **sizes)
    assert (both.name, backward.name) == ("native", "explicit_inverse")
