import json
import math

import pytest

from strategies.selection import held_out
from strategies.selection.files import UnusableFileError
from strategies.selection.held_out import Scores, draw_cases, measure, ratio
from strategies.selection.verdicts import Objective

NAMES = ("native", "triangular_solve")


def test_the_same_seed_draws_the_same_cases():
    drawn = [draw_cases(20, "cpu", seed) for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_fewer_cases_are_the_first_of_more():
    assert draw_cases(5, "cpu", 0) == draw_cases(9, "cpu", 0)[:5]


def test_every_operation_has_its_share_and_no_case_is_too_large():
    cases = draw_cases(60, "cpu", 0)
    assert [sum(c.operation == op for c in cases) for op in held_out.OPERATIONS] == [10] * 6
    for case in cases:
        work = math.prod(case.shape) * min(case.shape) * max(case.batch, 1)
        assert work <= held_out.LARGEST_WORK


def test_some_cases_are_batches_some_deficient_some_ill_conditioned():
    cases = draw_cases(300, "cpu", 0)
    assert 100 < sum(case.batch > 0 for case in cases) < 200
    assert any(case.rank is not None for case in cases)
    assert max(case.log10_cond or 0 for case in cases) > 10


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(held_out, "SIDES", (3, 12))
    monkeypatch.setattr(held_out, "BATCHES", (2, 8))


def scores(path, names=NAMES, seed=0, objective=Objective.MEMORY):
    # Memory is counted, so that no test waits for rounds.
    return Scores(path, seed, "cpu", names, objective)


def test_a_case_is_measured_with_every_strategy(small):
    case = next(c for c in draw_cases(40, "cpu", 0) if c.rank is not None)
    found = measure(case, NAMES, Objective.BACKWARD, budget=0)
    native, refusing = found["strategies"]
    assert (native["strategy"], native["status"]) == ("native", "ok")
    assert native["speedup_over_native"] == 1.0
    assert native["error"] < 1e-3
    assert len(native["rounds"]) >= 8
    assert refusing == {"strategy": "triangular_solve", "status": "n/a"}
    assert found["label"] == case.label


def test_memory_takes_no_rounds(small):
    found = measure(draw_cases(1, "cpu", 0)[0], NAMES, Objective.MEMORY)
    assert all(entry["screened"] == entry["peak_bytes"] for entry in found["strategies"])


def test_an_interrupted_run_goes_on_where_it_stopped(small, tmp_path):
    path = tmp_path / "scores.json"

    labels = [case.label for case in draw_cases(3, "cpu", 0)]

    def interrupt(label):
        if label != labels[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scores(path).complete(3, 0.0, interrupt)
    (first,) = json.loads(path.read_text())["cases"]
    begun = []
    cases = scores(path).complete(3, 0.0, begun.append)
    assert begun == labels[1:]
    assert [case["label"] for case in cases] == labels
    assert cases[0] == first
    assert len(json.loads(path.read_text())["cases"]) == 3


def test_what_is_complete_is_not_measured_again(small, tmp_path):
    path = tmp_path / "scores.json"
    scores(path).complete(2, 0.0)
    before = path.read_bytes()
    assert len(scores(path).complete(1, 0.0, pytest.fail)) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 1}, "seed 0, not 1"),
        ({"names": ("native",)}, "strategies"),
        ({"objective": Objective.BACKWARD}, "objective memory, not backward"),
    ],
)
def test_measurements_of_something_else_are_refused(small, tmp_path, changed, said):
    path = tmp_path / "scores.json"
    scores(path).complete(1, 0.0)
    with pytest.raises(UnusableFileError, match=rf"scores\.json: .*{said}"):
        scores(path, **changed)


def test_a_file_of_another_machine_is_scored_but_not_added_to(small, tmp_path):
    path = tmp_path / "scores.json"
    scores(path).complete(1, 0.0)
    content = json.loads(path.read_text())
    content["machine"]["cpu"] = "an abacus"
    path.write_text(json.dumps(content))
    assert scores(path).complete(1, 0.0)
    with pytest.raises(UnusableFileError, match="cpu an abacus, not"):
        scores(path).complete(2, 0.0)
    assert json.loads(path.read_text()) == content


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace(held_out.FORMAT, "something else"),
        lambda text: text.replace('"version": 2', '"version": 3'),
        lambda text: text.replace('"version": 2', '"version": 1'),
        lambda text: text.replace('"rounds"', '"squares"'),
        lambda text: text.replace('"label"', '"lable"'),
    ],
)
def test_what_is_no_scores_file_is_named_and_kept(small, tmp_path, damage):
    path = tmp_path / "scores.json"
    scores(path).complete(1, 0.0)
    damaged = damage(path.read_text())
    path.write_text(damaged)
    with pytest.raises(UnusableFileError) as caught:
        scores(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert path.read_text() == damaged


def test_the_ratio_is_taken_within_each_round():
    drifting = [1.0, 2.0, 4.0, 8.0]
    twice = {"screened": 9.0, "rounds": [2 * seconds for seconds in drifting]}
    assert ratio(twice, {"screened": 1.0, "rounds": drifting}) == (2.0, 2.0, 2.0)


def test_what_sat_the_rounds_out_is_compared_by_its_screening():
    assert ratio({"screened": 30.0, "rounds": []}, {"screened": 2.0, "rounds": [1.0]})[0] == 15.0
