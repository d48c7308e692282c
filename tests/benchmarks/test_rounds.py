"""Cells measured in rounds: what a policy is built from."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks import rounds
from benchmarks.grid import Block, Grid
from strategies.selection import policy_building, rows
from strategies.selection.verdicts import Criteria, Objective


@pytest.fixture
def three_cells(monkeypatch):
    """A grid with one cell to time, and two for their errors; and a cell of another operation."""

    grid = Grid(
        single={"inv": Block("4x4"), "det": Block("4x4")},
        batched={},
        conditioned={"inv": Block("4x4")},
        log10_conds=(1, 5),
        sized={},
        gallery={},
    )
    monkeypatch.setattr(rounds, "CHOSEN", grid)
    names = ("native", "triangular_solve")
    monkeypatch.setattr(rounds.strategies, "available", lambda: names)
    monkeypatch.setattr(rounds.registry, "distinct", lambda _: names)


def _run(*arguments):
    app = rounds.typer.Typer()
    app.command()(rounds.main)
    return CliRunner().invoke(app, [*map(str, arguments), "--budget", "0.01"])


@pytest.fixture
def measured(three_cells, tmp_path):
    file = tmp_path / "rounds.json"
    result = _run(file, "--operation", "inv")
    assert result.exit_code == 0, result.output
    return file


def test_all_operations_are_measured_unless_one_is_named(three_cells, tmp_path):
    assert _run(tmp_path / "all.json").exit_code == 0
    cases = json.loads((tmp_path / "all.json").read_text())["cases"]
    assert [case["cell"]["operation"] for case in cases] == ["inv", "det", "inv", "inv"]


def test_an_operation_that_is_not_in_the_grid_is_refused(three_cells, tmp_path):
    result = _run(tmp_path / "none.json", "--operation", "qr")
    assert result.exit_code != 0
    assert "--operation qr: there is inv, det" in result.output


def test_a_policy_can_be_built_from_them(measured):
    table = rows.load(measured.parent)
    names = ("native", "triangular_solve")
    policy = policy_building.build(table, names, Criteria(Objective.FORWARD_BACKWARD))
    (cell,) = policy["operations"]["inv"]["cells"]["cpu"]["float64"]["full_rank"]
    assert cell["use"] in names
    assert set(cell["times"]) == set(names)


def test_the_interval_is_that_of_the_ratio_to_the_first(measured):
    first, second = json.loads(measured.read_text())["cases"][0]["strategies"]
    seconds = [first[f"forward_backward_seconds{end}"] for end in ("_low", "", "_high")]
    assert seconds[0] == seconds[1] == seconds[2]
    low, middle, high = (second[f"forward_backward_seconds{end}"] for end in ("_low", "", "_high"))
    assert low <= middle <= high


def test_where_only_errors_are_compared_nothing_is_timed(measured):
    table = rows.load(measured.parent)
    conditioned = table[table["log10_cond"].notna()]
    assert len(conditioned) == 4
    assert conditioned["error"].notna().all()
    assert conditioned["forward_backward_seconds"].isna().all()


def test_the_same_command_goes_on_with_what_is_there(measured):
    content = json.loads(measured.read_text())
    kept = content["cases"][0]
    measured.write_text(json.dumps(content | {"cases": [kept]}))
    assert _run(measured, "--operation", "inv").exit_code == 0
    again = json.loads(measured.read_text())["cases"]
    assert again[0] == kept
    assert len(again) == 3


def test_a_file_of_another_run_is_left_alone(measured):
    before = measured.read_text()
    result = _run(measured, "--operation", "inv", "--objective", "backward")
    assert result.exit_code != 0
    assert "objective forward_backward, not backward" in result.output
    assert measured.read_text() == before
