import msgspec
import pytest
from by_hand import took

from strategies import policy
from strategies.files.documents import json_text
from strategies.measuring.measurement import Cell
from strategies.policy.schema import Policy


@pytest.fixture
def measured(monkeypatch):
    """The cases that are measured; in this, every strategy takes a second."""
    cases = []

    def measure(case, names, *, objectives, budget):
        cases.append(case)
        (objective,) = objectives
        return Cell(case, tuple(took(name, 1.0, by=objective) for name in names))

    monkeypatch.setattr("strategies.cli.regret.measure", measure)
    return cases


def test_kept_measurements_score_a_policy_without_measuring(invoke, kept, measured):
    result = invoke("regret", policy.SHIPPED, "--cases", 2, "--scores", kept)
    assert "Regret over 2 drawn cases" in result.stdout
    assert "times as fast as native" in result.stdout
    assert "0 of 2 done" in result.stderr
    assert all(name in result.stdout for name in ("policy", "single default", "native"))
    again = invoke("regret", policy.SHIPPED, "--cases", 2, "--scores", kept)
    assert again.stdout == result.stdout
    assert len(measured) == 2
    invoke("regret", policy.SHIPPED, "--cases", 3, "--scores", kept)
    assert len(measured) == 3


def test_an_interrupted_run_says_what_it_has_kept(invoke, kept, measured, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    invoke("regret", policy.SHIPPED, "--cases", 1, "--scores", kept)
    monkeypatch.setattr("strategies.cli.regret.measure", interrupt)
    result = invoke("regret", policy.SHIPPED, "--cases", 3, "--scores", kept, code=130)
    assert "interrupted: 1 of 3 cells are in" in result.stderr


def test_measurements_of_another_draw_or_objective_are_refused(invoke, fails, kept, measured):
    draw = "--cases", 2, "--scores", kept
    invoke("regret", policy.SHIPPED, *draw)
    fails(["regret", policy.SHIPPED, "--seed", 1, *draw], kept.name, "is not of this draw")
    fails(["regret", policy.BY_BACKWARD, *draw], kept.name, "backward")
    kept.write_text('{"format": "something else"}')
    fails(["regret", policy.SHIPPED, "--scores", kept], kept.name)
    assert kept.read_text() == '{"format": "something else"}'


def test_what_cannot_be_scored_is_one_line(invoke, fails, tmp_path, kept, measured):
    path = tmp_path / "policy.json"
    path.write_text(json_text(Policy(operations={})))
    fails(["regret", path], "holds no cells")
    shipped = Policy.read(policy.SHIPPED)
    strict = msgspec.structs.replace(shipped, criteria={**shipped.criteria, "accuracy": 1e-20})
    path.write_text(json_text(strict))
    invoke("regret", policy.SHIPPED, "--cases", 1, "--scores", kept)
    fails(["regret", path, "--cases", 1, "--scores", kept], "no strategy is eligible")
    for device in ("xyz", "meta", "tpu"):
        fails(["regret", policy.SHIPPED, "--cases", 1, "--device", device], device)


def test_two_policies_are_compared_on_the_same_cases(invoke, tmp_path, measured):
    other = tmp_path / "other.json"
    other.write_text(json_text(Policy.read(policy.SHIPPED)))
    said = invoke("regret", "auto", "--against", other, "--cases", 2).stdout
    assert "policy auto" in said
    assert f"policy {other}" in said
    assert len(measured) == 2


def test_only_policies_of_the_same_objective_are_compared(invoke, fails, measured):
    fails(["regret", "shipped", "--against", policy.BY_BACKWARD], "is not by forward_backward")
    with policy.use("qr_pinv"):
        fails(["regret", "auto"], "that is a strategy")
    assert measured == []
