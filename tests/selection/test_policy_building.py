import json

import jsonschema
import pandas as pd
import pytest

from strategies.selection import policy_building
from strategies.selection.files import UnusableFileError
from strategies.selection.policy_building import (
    SCHEMA,
    agreement,
    build,
    differences,
    single_default,
)
from strategies.selection.verdicts import Criteria, judge


@pytest.fixture
def table(rows_of, at_speed):
    cells = [
        rows_of(at_speed("native", 1), at_speed("triangular_solve", 4), at_speed("qr_pinv", 2)),
        rows_of(
            at_speed("native", 1), at_speed("triangular_solve", 0.4), at_speed("qr_pinv", 0.9), m=8
        ),
        rows_of(
            at_speed("native", 1),
            at_speed("qr_pinv", 3),
            {"strategy": "triangular_solve", "status": "n/a"},
            rank=2,
        ),
    ]
    return pd.concat(cells, ignore_index=True)


@pytest.fixture
def policy(table, order):
    return build(table, order, Criteria())


def test_a_policy_fits_its_schema(policy):
    jsonschema.validate(policy, SCHEMA)


def test_cells_lie_under_device_dtype_and_kind_of_rank(policy):
    cells = policy["operations"]["pinv"]["cells"]["cpu"]["float64"]
    assert [cell["use"] for cell in cells["full_rank"]] == ["triangular_solve", "native"]
    assert [cell["use"] for cell in cells["rank_deficient"]] == ["qr_pinv"]


def test_a_cell_holds_the_times_of_all_that_are_eligible(policy):
    cells = policy["operations"]["pinv"]["cells"]["cpu"]["float64"]
    assert cells["full_rank"][0]["times"] == {"triangular_solve": 1, "qr_pinv": 2, "native": 4}
    assert cells["rank_deficient"][0]["times"] == {"qr_pinv": 1, "native": 3}


def test_the_single_default_says_what_comes_next(policy):
    default = policy["operations"]["pinv"]["default"]["full_rank"]
    assert default["then"] == ["triangular_solve", "native"]


def test_the_single_default_has_the_smallest_worst_regret(policy):
    default = policy["operations"]["pinv"]["default"]["full_rank"]
    assert (default["strategy"], default["worst_regret"]) == ("qr_pinv", pytest.approx(2.0))


def test_a_default_for_any_rank_covers_the_deficient(policy):
    default = policy["operations"]["pinv"]["default"]["any_rank"]
    assert (default["uncovered"], default["cells"]) == (0, 3)


def test_covering_more_cases_comes_before_small_regret(rows_of, at_speed, order):
    slow = at_speed("native", 1)
    rows = pd.concat(
        [
            rows_of(slow, at_speed("qr_pinv", 50)),
            rows_of(slow, {"strategy": "qr_pinv", "status": "failed"}, m=8),
        ],
        ignore_index=True,
    )
    default = single_default(judge(rows, order), order)
    assert default["strategy"] == "native"
    assert default["worst_regret"] == pytest.approx(50)


def test_a_policy_survives_being_written_and_read(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy_building.write(policy, path)
    assert policy_building.read(path) == policy


@pytest.mark.parametrize(
    ("version", "said"), [(1, "reads 2 and later: make it anew"), (3, "reads up to 2: upgrade it")]
)
def test_a_policy_of_another_version_is_refused_and_kept(policy, tmp_path, version, said):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy | {"version": version}))
    with pytest.raises(UnusableFileError, match=rf"policy\.json: has version {version}; .*{said}"):
        policy_building.read(path)
    assert json.loads(path.read_text())["version"] == version


def test_a_damaged_policy_is_named_with_the_place(policy, tmp_path):
    path = tmp_path / "policy.json"
    policy["operations"]["pinv"]["cells"]["cpu"]["float64"]["full_rank"][0]["use"] = 3
    path.write_text(json.dumps(policy))
    with pytest.raises(UnusableFileError, match=r"policy\.json: is damaged at .*use"):
        policy_building.read(path)


def test_results_of_two_machines_are_refused(table, order):
    other = table.assign(machine="there")
    with pytest.raises(ValueError, match="several machines"):
        build(pd.concat([table, other], ignore_index=True), order, Criteria())


def test_a_policy_does_not_differ_from_itself(policy):
    found = differences(policy, policy)
    assert (found["use_old"] == found["use_new"]).all()


@pytest.fixture
def with_speeds(rows_of, at_speed, order):
    """A policy of one cell, by the speeds of triangular_solve and qr_pinv."""

    def build_one(first, second, spread=1.1):
        rows = [at_speed("native", 1), at_speed("triangular_solve", first, spread)]
        return build(rows_of(*rows, at_speed("qr_pinv", second, spread)), order, Criteria())

    return build_one


def test_a_difference_within_a_tie_is_told_from_a_real_one(with_speeds):
    assert differences(with_speeds(4, 4), with_speeds(3, 4))["is_tie"].item()
    assert not differences(with_speeds(4, 1), with_speeds(1, 4))["is_tie"].item()


def test_agreement_leaves_out_ties_that_agree_as_well(with_speeds):
    decided, tied, other = with_speeds(8, 4), with_speeds(4, 4), with_speeds(1, 4)
    assert agreement(differences(decided, decided)) == (1, 1)
    assert agreement(differences(tied, tied)) == (0, 0)
    assert agreement(differences(decided, other)) == (0, 1)


def test_a_cell_of_one_policy_alone_is_no_disagreement(with_speeds):
    decided = with_speeds(8, 4)
    elsewhere = json.loads(json.dumps(decided))
    elsewhere["operations"]["pinv"]["cells"]["cpu"]["float64"]["full_rank"][0]["m"] = 99
    assert agreement(differences(decided, elsewhere)) == (0, 0)


def test_the_unstable_are_listed(rows_of, at_speed, order):
    timed = rows_of(at_speed("qr_pinv", 1), at_speed("explicit_inverse", 2))
    good = {"strategy": "qr_pinv", "error": 1e-10}
    bad = rows_of(good, {"strategy": "explicit_inverse", "error": 1e-3}, log10_cond=6)
    policy = build(pd.concat([timed, bad], ignore_index=True), order, Criteria())
    assert list(policy["operations"]["pinv"]["unstable"]["float64"]) == ["explicit_inverse"]
