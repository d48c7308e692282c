"""The policies in the package, against the measurements that are kept beside it."""

import functools
import statistics
from pathlib import Path

import msgspec
import pytest

from strategies import operations
from strategies import policy as policies
from strategies.files.documents import json_text
from strategies.measuring.measurement import Objective, Status
from strategies.measuring.store import load
from strategies.policy.schema import Policy
from strategies.selection import regret
from strategies.selection.draws import draw_cases
from strategies.selection.eligibility import Criteria
from strategies.selection.policies import build

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "epyc-2cores"
PAGE = " ".join((ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split())

SHIPPED = [
    (policies.SHIPPED, Objective.FORWARD_BACKWARD),
    (policies.BY_BACKWARD, Objective.BACKWARD),
]

SEED = {Objective.FORWARD_BACKWARD: 41, Objective.BACKWARD: 43}
"""Of the kept draws."""

WORST = {Objective.FORWARD_BACKWARD: 1.7, Objective.BACKWARD: 2.2}
"""Regrets that are no noise: docs/choosing.md says where they are."""


@functools.cache
def drawn(objective):
    (run,) = load(KEPT / "draws" / f"{objective}-{SEED[objective]}.json.gz", "draw")
    return run.cells


def score(path, objective):
    return regret.score(drawn(objective), Policy.read(path))


def of_policy(scores):
    return next(each for each in regret.summaries(scores) if each.choice == regret.POLICY)


@pytest.mark.parametrize(("path", "objective"), SHIPPED)
def test_they_are_what_the_kept_measurements_say_of_every_operation(path, objective):
    shipped, built = Policy.read(path), build(load(KEPT), Criteria(objective))
    assert json_text(built) == json_text(shipped)
    assert set(shipped.operations) == set(operations.measured())


def _is_taken(cell):
    return any(each.status is Status.OK for each in cell if each.strategy != policies.BASELINE)


@pytest.mark.parametrize(("path", "objective"), SHIPPED)
def test_they_choose_well_in_100_cases_that_were_not_measured_for_them(path, objective):
    assert [cell.case for cell in drawn(objective)] == draw_cases(100, "cpu", SEED[objective])
    scores = score(path, objective)
    found = of_policy(scores)
    # All refuse a gradient of LU where the rank is not determined.
    assert found.cases == sum(map(_is_taken, drawn(objective))) >= 99
    assert found.eligible == 1
    shown = found.median, found.mean, found.p95, found.worst, found.over_native
    assert f"seed {SEED[objective]} | {' | '.join(f'{each:.2f}' for each in shown)} |" in PAGE
    assert found.median <= 1.03
    assert found.p95 <= 1.1
    wrong_beyond_noise = [each for each in regret.wrong_choices(scores) if each.regret_low > 1]
    assert all(each.regret <= WORST[objective] for each in wrong_beyond_noise)


def test_between_the_cases_it_chooses_as_the_documentation_says():
    shipped, regrets = Policy.read(policies.SHIPPED), []
    for operation, known in shipped.operations.items():
        for dtype, cells in known.cells["cpu"].items():
            for cell in cells:
                left = {
                    "cpu": known.cells["cpu"] | {dtype: tuple(c for c in cells if c is not cell)}
                }
                other = {operation: msgspec.structs.replace(known, cells=left)}
                policy = msgspec.structs.replace(shipped, operations=shipped.operations | other)
                key = (operation, cell.m, cell.n, cell.rhs, cell.batch, dtype, "cpu")
                ranked = policy.ranking(key, deficient=cell.rank is not None)
                regrets.append(next(cell.times[name] for name in ranked if name in cell.times))
    said = (
        f"With each of {len(regrets)} cells left out once, this choice takes "
        f"{statistics.geometric_mean(regrets):.2f} times as long as the best on average; "
        f"{statistics.fmean(each > 1.3 for each in regrets):.0%}"
    )
    assert said.replace("%", " %") in PAGE


@pytest.mark.parametrize(("path", "_"), SHIPPED)
def test_they_use_only_what_hundreds_of_hard_cases_show_to_be_stable(path, _):
    for known in Policy.read(path).operations.values():
        used = {cell.use for by in known.cells.values() for cells in by.values() for cell in cells}
        assert used
        assert all(known.stability[name].is_stable for name in used)
        assert all(each.judged + each.refused >= 300 for each in known.stability.values())
        assert "native" not in used or known.stability["native"].is_stable


def test_pytorchs_gradients_are_unstable_where_the_documentation_says_so():
    known = Policy.read(policies.SHIPPED).operations
    unstable = {name for name, each in known.items() if not each.stability["native"].is_stable}
    assert unstable >= {"lstsq", "pinv", "det", "lu_factor", "solve"}


@pytest.mark.parametrize("shipped", SHIPPED)
def test_where_native_is_stable_it_is_never_faster(shipped):
    assert not [each for each in regret.slower_than_native(score(*shipped)) if not each.native]


def test_they_are_faster_than_native_over_all_draws():
    assert of_policy(score(*SHIPPED[0])).over_native >= 2.4
    assert of_policy(score(*SHIPPED[1])).over_native >= 2.9


def test_one_is_used_by_default_and_the_other_when_asked_for():
    key = "solve", 64, 64, 16, 160, "float64", "cpu"
    for (policy, _), expected in zip(SHIPPED, ("fused", "explicit_inverse"), strict=True):
        with policies.use(policy):
            assert policies.candidates(*key, any_rank=True)[0].name == expected
