import json

import pytest


@pytest.fixture
def built(invoke, results, tmp_path):
    path = tmp_path / "policy.json"
    result = invoke("policy", "build", path, "--results", results)
    assert result.exit_code == 0, result.output
    assert "cells written to" in result.stdout
    return path


def test_a_policy_is_built_shown_and_compared(invoke, built):
    shown = invoke("policy", "show", built)
    assert shown.exit_code == 0, shown.output
    assert "If only one may be kept" in shown.stdout
    assert "rank=" in shown.stdout
    same = invoke("policy", "diff", built, built)
    assert same.exit_code == 0
    assert ", 0 differ;" in same.stdout


def test_policies_that_differ_give_exit_code_one(invoke, built, tmp_path):
    content = json.loads(built.read_text())
    cell = content["operations"]["lu_factor"]["cells"]["cpu"]["float64"][0]
    cell[5:7] = "somebody_elses", []
    new = tmp_path / "new.json"
    new.write_text(json.dumps(content))
    result = invoke("policy", "diff", built, new)
    assert result.exit_code == 1
    assert "somebody_elses" in result.stdout


def test_a_foreign_policy_is_named_and_kept(invoke, fails, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"format": "something else"}')
    for command in (("policy", "show", path), ("policy", "diff", path, path), ("regret", path)):
        fails(invoke(*command), "policy.json", "is not a backward-strategies policy")
    assert path.read_text() == '{"format": "something else"}'


def test_a_place_that_cannot_be_written_is_named(invoke, fails, results, tmp_path):
    out = tmp_path / "nowhere" / "policy.json"
    fails(invoke("policy", "build", out, "--results", results), "nowhere", "cannot be written")
