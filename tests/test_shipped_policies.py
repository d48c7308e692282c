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


def scores(path, objective):
    policy = policy_building.read(path)
    kept = json.loads((KEPT / "regret" / f"{objective}.json").read_text(encoding="utf-8"))
    return regret.score(kept["cases"], policy, strategies.available())


@pytest.fixture(scope="module", params=["forward_backward", "backward"])
def scored(request):
    path = {"forward_backward": BY_BOTH, "backward": policies.BY_BACKWARD}[request.param]
    return scores(path, request.param)


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


def test_they_choose_well_in_150_cases_that_were_not_measured_for_them(scored):
    found = regret.summary(scored).loc["policy"]
    assert found["cases"] >= 150
    assert found["median"] <= 1.03
    assert found["p95"] <= 1.3
    assert found["worst"] <= 2


def test_they_are_nowhere_slower_than_native(scored):
    assert regret.slower_than_native(scored).empty


def test_the_backward_is_twice_as_fast_as_native_by_the_policy_for_it():
    found = regret.summary(scores(policies.BY_BACKWARD, "backward")).loc["policy"]
    assert found["over_native"] >= 2


def test_one_is_used_by_default_and_the_other_when_asked_for():
    sizes = {"rhs": 1, "batch": 0, "dtype": "float64", "device": "cpu"}
    (both,) = policies.candidates("solve", 512, 512, **sizes)
    with policies.use(policies.BY_BACKWARD):
        (backward,) = policies.candidates("solve", 512, 512, **sizes)
    assert (both.name, backward.name) == ("native", "explicit_inverse")
