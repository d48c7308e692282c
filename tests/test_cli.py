import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import strategies
from strategies.cli import app

RESULTS = Path(__file__).parent / "selection" / "data" / "asv"


@pytest.fixture
def invoke(monkeypatch):
    from strategies.commands import common

    # Rich takes the width from the terminal, of which there is none.
    monkeypatch.setattr(common.console, "_width", 200)

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run


def failed(result, *said):
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    for text in said:
        assert text in result.stderr


def test_list_shows_every_strategy(invoke):
    result = invoke("list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in strategies.available())


def test_recommend_without_a_case_covers_all(invoke):
    result = invoke("recommend", "--results", RESULTS)
    assert result.exit_code == 0
    assert "lu_factor" in result.stdout
    assert "16x4 rank=2" in result.stdout
    assert "measured on" in result.stdout


def test_recommend_for_a_case_ranks_and_names_the_nearest(invoke):
    result = invoke("recommend", "--results", RESULTS, "--operation", "pinv", "--shape", "100x10")
    assert result.exit_code == 0
    assert "← " in result.stdout
    assert "100x10 itself was not measured" in result.stdout
    assert "a7107f47-existing-py3.11.json" in result.stdout


def test_recommend_as_json_is_nothing_but_json(invoke):
    result = invoke("recommend", "--results", RESULTS, "--operation", "pinv", "--json")
    content = json.loads(result.stdout)
    assert {cell["operation"] for cell in content["cells"]} == {"pinv"}


def test_recommend_writes_json_beside_the_table(invoke, tmp_path):
    out = tmp_path / "r.json"
    result = invoke("recommend", "--results", RESULTS, "--out", out)
    assert "What to use" in result.stdout
    assert json.loads(out.read_text())["cells"]


def test_recommend_can_measure_on_the_spot(invoke):
    result = invoke("recommend", "--operation", "inv", "--shape", "8x8", "--measure", "--json")
    content = json.loads(result.stdout)
    assert content["provenance"][0]["source"] == "measured now"
    names = {strategy["strategy"] for strategy in content["cells"][0]["strategies"]}
    assert names == set(strategies.available())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operation", "qr"], "operation qr; there is lu_factor, pinv"),
        (["--operation", "pinv", "--shape", "big"], "'big' is not a shape"),
        (["--shape", "4x4"], "--shape needs --operation"),
        (["--operation", "pinv", "--dtype", "float16"], "dtype float16"),
        (["--measure"], "--measure needs"),
        (["--operation", "inv", "--shape", "4x5", "--measure"], "square"),
    ],
)
def test_what_recommend_cannot_do_is_one_line(invoke, arguments, said):
    failed(invoke("recommend", "--results", RESULTS, *arguments), said)


def test_a_corrupt_result_is_named(invoke, tmp_path):
    (tmp_path / "x.json").write_text("{")
    failed(invoke("recommend", "--results", tmp_path), "x.json")


def test_a_policy_is_built_shown_and_compared(invoke, tmp_path):
    path = tmp_path / "policy.json"
    built = invoke("policy", "build", path, "--results", RESULTS)
    assert built.exit_code == 0, built.output
    shown = invoke("policy", "show", path)
    assert "If only one may be kept" in shown.stdout
    assert "16x4 rank=2" in shown.stdout
    same = invoke("policy", "diff", path, path)
    assert same.exit_code == 0
    assert ", 0 differ;" in same.stdout


def test_policies_that_differ_give_exit_code_one(invoke, tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    invoke("policy", "build", old, "--results", RESULTS)
    content = json.loads(old.read_text())
    cell = content["operations"]["lu_factor"]["cells"]["cpu"]["float64"]["full_rank"][0]
    cell.update(use="somebody_elses", ties=[])
    new.write_text(json.dumps(content))
    result = invoke("policy", "diff", old, new)
    assert result.exit_code == 1
    assert "somebody_elses" in result.stdout


def test_a_foreign_policy_is_named_and_kept(invoke, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text('{"format": "something else"}')
    failed(invoke("policy", "show", path), "policy.json", "is not a backward-strategies policy")
    failed(invoke("regret", path), "policy.json")
    assert path.read_text() == '{"format": "something else"}'


@pytest.fixture
def small_cases(monkeypatch):
    from strategies.commands import regret as command
    from strategies.selection import held_out

    monkeypatch.setattr(held_out, "SIDES", (3, 12))
    monkeypatch.setattr(held_out, "BATCHES", (2, 8))
    monkeypatch.setattr(command, "BUDGET", 0.0)


def test_regret_scores_a_policy_and_another_on_the_same_measurements(
    invoke, tmp_path, small_cases, monkeypatch
):
    from strategies.selection import held_out

    policy, kept = tmp_path / "policy.json", tmp_path / "scores.json"
    invoke("policy", "build", policy, "--results", RESULTS)
    result = invoke("regret", policy, "--cases", 2, "--scores", kept)
    assert result.exit_code == 0, result.output
    assert "Regret over 2 held-out cases" in result.stdout
    assert "times as fast as native" in result.stdout
    assert "0 of 2 done" in result.stderr
    assert all(name in result.stdout for name in ("policy", "single default", "native"))
    monkeypatch.setattr(held_out, "measure", lambda *_: pytest.fail("measured again"))
    again = invoke("regret", policy, "--cases", 2, "--scores", kept)
    assert again.stdout == result.stdout


def test_regret_says_what_an_interrupted_run_has_kept(invoke, tmp_path, small_cases, monkeypatch):
    from strategies.selection import held_out

    def interrupt(*_):
        raise KeyboardInterrupt

    policy, kept = tmp_path / "policy.json", tmp_path / "scores.json"
    invoke("policy", "build", policy, "--results", RESULTS)
    invoke("regret", policy, "--cases", 1, "--scores", kept)
    monkeypatch.setattr(held_out, "measure", interrupt)
    result = invoke("regret", policy, "--cases", 3, "--scores", kept)
    assert result.exit_code == 130
    assert "interrupted: 1 of 3 cases are in" in result.stderr


def test_a_foreign_scores_file_is_named_and_kept(invoke, tmp_path):
    policy, kept = tmp_path / "policy.json", tmp_path / "scores.json"
    invoke("policy", "build", policy, "--results", RESULTS)
    kept.write_text('{"format": "something else"}')
    failed(
        invoke("regret", policy, "--scores", kept), "scores.json", "is not a backward-strategies"
    )
    assert kept.read_text() == '{"format": "something else"}'


def test_figures_need_a_checkout(invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed(invoke("plot", "--results", RESULTS), "from a checkout")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_colon", "not of the form module:Class"),
        ("nowhere.to.be.found:X", "nowhere"),
        ("pathlib:Path", "is not a subclass of strategies.Strategy"),
    ],
)
def test_what_cannot_be_checked_is_one_line(invoke, target, said):
    failed(invoke("check", target), said)


def test_a_sound_strategy_is_in_order(invoke):
    result = invoke("check", "strategies.triangular_solve:TriangularSolve")
    assert result.exit_code == 0, result.output
    assert "strategies.triangular_solve:TriangularSolve: in order" in result.stdout
    assert "complex gradient of pinv" in result.stdout


def test_a_broken_strategy_gives_exit_code_one_and_the_fault(invoke, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text(
        "from strategies.builtin.triangular_solve import TriangularSolve\n"
        "class Broken(TriangularSolve):\n"
        "    name = 'broken'\n"
        "    def inv_backward(self, inverse, cotangent):\n"
        "        return 2 * cotangent\n"
    )
    monkeypatch.chdir(tmp_path)
    result = invoke("check", "broken:Broken")
    assert result.exit_code == 1
    assert "batched gradient of inv" in result.stdout
    assert "times what rounding" in result.stdout
    assert "checks failed" in result.stdout
