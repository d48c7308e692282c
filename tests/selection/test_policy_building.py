import json

import jsonschema
import pandas as pd
import pytest

from strategies.selection import policy_building
from strategies.selection.files import UnusableFileError
from strategies.selection.policy_building import SCHEMA, build, differences, single_default
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


def test_a_difference_within_a_tie_is_told_from_a_real_one(rows_of, at_speed, order):
    def with_speeds(first, second):
        spread = 1.1
        rows = [at_speed("native", 1), at_speed("triangular_solve", first, spread)]
        return build(rows_of(*rows, at_speed("qr_pinv", second, spread)), order, Criteria())

    old, tied, other = with_speeds(4, 4), with_speeds(3, 4), with_speeds(1, 4)
    assert differences(old, tied)["is_tie"].item()
    assert not differences(with_speeds(4, 1), other)["is_tie"].item()


def test_the_unstable_are_listed(rows_of, at_speed, order):
    timed = rows_of(at_speed("qr_pinv", 1), at_speed("explicit_inverse", 2))
    good = {"strategy": "qr_pinv", "error": 1e-10}
    bad = rows_of(good, {"strategy": "explicit_inverse", "error": 1e-3}, log10_cond=6)
    policy = build(pd.concat([timed, bad], ignore_index=True), order, Criteria())
    assert list(policy["operations"]["pinv"]["unstable"]["float64"]) == ["explicit_inverse"]
