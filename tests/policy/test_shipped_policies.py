"""The policies in the package, against the measurements that are kept beside it."""

from pathlib import Path

import pytest

from strategies import files, operations
from strategies import policy as policies
from strategies.measuring.measurement import Objective, Status
from strategies.measuring.store import load
from strategies.policy import schema
from strategies.selection import regret
from strategies.selection.draws import draw_cases
from strategies.selection.eligibility import Criteria
from strategies.selection.policies import build

KEPT = Path(__file__).parents[2] / "results" / "epyc-2cores"

SHIPPED = [
    (policies.SHIPPED, Objective.FORWARD_BACKWARD),
    (policies.BY_BACKWARD, Objective.BACKWARD),
]

SEED = 41
"""Of the kept draw, by forward and backward together."""

WORST = 1.7
"""A regret that is no noise: docs/choosing.md says where it is."""


@pytest.fixture(scope="module")
def drawn():
    (run,) = load(KEPT / "draws" / f"forward_backward-{SEED}.json.gz", "draw")
    return run.cells


@pytest.fixture(scope="module")
def scores(drawn):
    return regret.score(drawn, schema.read(policies.SHIPPED))


def of_policy(scores):
    return next(each for each in regret.summaries(scores) if each.choice == regret.POLICY)


@pytest.mark.parametrize(("path", "objective"), SHIPPED)
def test_they_are_what_the_kept_measurements_say(path, objective):
    built = build(load(KEPT), Criteria(objective))
    assert files.json_text(built) == files.json_text(schema.read(path))


@pytest.mark.parametrize(("path", "objective"), SHIPPED)
def test_they_know_every_operation_that_is_measured(path, objective):
    known = schema.read(path).operations
    assert set(known) == set(operations.measured())


def _is_taken(cell):
    return any(each.status is Status.OK for each in cell if each.strategy != policies.BASELINE)


def test_the_default_chooses_well_in_100_cases_that_were_not_measured_for_it(drawn, scores):
    assert [cell.case for cell in drawn] == draw_cases(100, "cpu", SEED)
    found = of_policy(scores)
    # All refuse a gradient of LU where the rank is not determined.
    assert found.cases == sum(map(_is_taken, drawn)) >= 99
    assert found.eligible == 1
    assert found.median <= 1.03
    assert found.p95 <= 1.1
    wrong_beyond_noise = [each for each in regret.wrong_choices(scores) if each.regret_low > 1]
    assert all(each.regret <= WORST for each in wrong_beyond_noise)


@pytest.mark.parametrize(("path", "_"), SHIPPED)
def test_they_use_only_what_hundreds_of_hard_cases_show_to_be_stable(path, _):
    for known in schema.read(path).operations.values():
        used = {cell.use for by in known.cells.values() for cells in by.values() for cell in cells}
        assert used
        assert all(known.stability[name].is_stable for name in used)
        assert all(each.judged + each.refused >= 300 for each in known.stability.values())
        assert "native" not in used or known.stability["native"].is_stable


def test_pytorchs_gradients_are_unstable_where_the_documentation_says_so():
    known = schema.read(policies.SHIPPED).operations
    unstable = {name for name, each in known.items() if not each.stability["native"].is_stable}
    assert unstable >= {"lstsq", "pinv", "det", "lu_factor", "solve"}


def test_where_native_is_stable_it_is_never_faster(scores):
    assert not [each for each in regret.slower_than_native(scores) if not each.native]


def test_it_is_faster_than_native_over_all_cases_of_the_draw(scores):
    assert of_policy(scores).over_native >= 2


def test_one_is_used_by_default_and_the_other_when_asked_for():
    sizes = {"rhs": 16, "batch": 160, "dtype": "float64", "device": "cpu", "any_rank": True}
    with policies.use(policies.SHIPPED):
        both, *_ = policies.candidates("solve", 64, 64, **sizes)
    with policies.use(policies.BY_BACKWARD):
        backward, *_ = policies.candidates("solve", 64, 64, **sizes)
    assert (both.name, backward.name) == ("fused", "explicit_inverse")
