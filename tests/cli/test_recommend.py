import json
from pathlib import Path

import pytest
from by_hand import took

import strategies
from strategies.measuring import Cell

INV = "--operation", "inv", "--shape", "4x4"


def test_without_a_case_it_covers_all_below_the_load_and_noise(invoke, results):
    before, table = invoke("recommend", "--results", results).stdout.split("What to use")
    assert before == "when measuring began: load 0.46 a core, noise 1.12: the machine was quiet\n"
    assert all(said in table for said in ("lu_factor", "rank=", "measured on epyc"))


def test_for_a_case_it_ranks_and_names_the_nearest(invoke, results):
    result = invoke("recommend", "--results", results, "--operation", "pinv", "--shape", "100x10")
    assert "← " in result.stdout
    assert "100x10 itself was not measured" in result.stdout
    assert "say:" in result.stdout
    assert "in all.json.gz" in result.stdout


def test_json_is_nothing_but_json(invoke, results):
    result = invoke("recommend", "--results", results, "--operation", "pinv", "--json")
    content = json.loads(result.stdout)
    assert {cell["operation"] for cell in content["cells"]} == {"pinv"}
    assert content["criteria"]["objective"] == "forward_backward"


def test_it_writes_json_and_markdown_beside_the_table(invoke, results, tmp_path):
    out, page = tmp_path / "r.json", tmp_path / "page.md"
    page.write_text("<!-- recommendation: all -->\n<!-- recommendation: end -->\n")
    options = ("--operation", "det", "--out", out, "--markdown", page)
    result = invoke("recommend", "--results", results, *options)
    assert "What to use" in result.stdout
    assert json.loads(out.read_text())["cells"]
    assert "| `det` |" in page.read_text()


@pytest.mark.parametrize(
    ("operation", "chosen"), [("inv", "explicit_inverse"), ("pinv", "triangular_solve")]
)
def test_what_is_measured_now_obeys_the_rule_of_stability(invoke, monkeypatch, operation, chosen):
    def measure(case, names, *, begins):
        times = {"explicit_inverse": 1.0}
        return Cell(case, tuple(took(name, times.get(name, 2.0)) for name in names))

    monkeypatch.setattr("strategies.cli.recommend.measure", measure)
    result = invoke("recommend", "--operation", operation, "--shape", "8x8", "--measure", "--json")
    (cell,) = json.loads(result.stdout)["cells"]
    assert (cell["chosen"], cell["source"]) == (chosen, "measured now")
    assert {each["strategy"] for each in cell["strategies"]} == set(strategies.available())


@pytest.fixture
def nothing_measured(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_without_results_the_shipped_policy_answers(invoke, nothing_measured):
    every = invoke("recommend")
    assert "If only one may be kept" in every.stdout
    one = invoke("recommend", "--operation", "slogdet", "--shape", "9x9")
    assert "For slogdet 9x9 float64 cpu: " in one.stdout
    for result in (every, one):
        assert "`backward-strategies measure" in result.stdout
        assert "measured on epyc · AMD EPYC" in result.stdout
    asked = invoke("recommend", "--operation", "inv", "--shape", "9x9", "--json")
    assert json.loads(asked.stdout)["asked"]["ranking"]
    alone = invoke("recommend", "--operation", "lu", "--out", "shipped.json").stdout
    assert "lu_factor" in alone
    assert "pinv" not in alone
    assert json.loads(Path("shipped.json").read_text())["provenance"]


@pytest.mark.parametrize(
    "option", [("--accuracy", "1e-6"), ("--markdown", "x.md"), ("--objective", "backward")]
)
def test_without_results_what_needs_them_is_refused(fails, nothing_measured, option):
    fails(["recommend", *option], f"{option[0]}", "need results; `backward-strategies measure")


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(fails, tmp_path):
    out = tmp_path / "none" / "r.json"
    fails(["recommend", *INV, "--measure", "--out", out], "r.json: cannot be written")


def test_a_folder_that_was_asked_for_has_to_be_there(invoke, fails, nothing_measured):
    fails(["recommend", "--results", "nowhere"], "nowhere")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operation", "qr"], "no measured operation is named 'qr'"),
        (["--operation", "pinv", "--shape", "big"], "'pinv big' is no case"),
        (["--operation", "inv", "--shape", "4x5"], "square"),
        (["--shape", "4x4"], "--shape needs --operation"),
        (["--operation", "pinv", "--dtype", "float16"], "dtype float16"),
        ([*INV, "--device", "xyz"], "unknown device 'xyz'"),
        ([*INV, "--device", "meta", "--measure"], "device 'meta'"),
        ([*INV, "--device", "cuda:9", "--measure"], "cuda:9"),
        (["--measure"], "--measure needs"),
        *((["--accuracy", x], "accuracy has to be a positive number") for x in ("nan", "-1", "0")),
        *((["--memory", x], "memory has to be a positive number") for x in ("nan", "-5")),
    ],
)
def test_what_it_cannot_do_is_one_line(invoke, fails, results, arguments, said):
    fails(["recommend", "--results", results, *arguments], said)


def test_a_damaged_result_is_named(fails, tmp_path):
    (tmp_path / "x.json").write_text("[[[")
    fails(["recommend", "--results", tmp_path], "x.json")
