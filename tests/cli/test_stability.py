import json

import pytest

from strategies import use
from strategies.measuring import store


def test_every_strategy_and_auto_are_judged_and_kept(invoke, kept):
    done = invoke("stability", "--operation", "inv", "--cases", 4, "--out", kept)
    assert "Stability ratios over 4 hard cases, seed 0, limit 100" in done.stdout
    assert "qr_pinv" in done.stdout
    assert "auto" in done.stdout
    (run,) = store.load(kept, "stability")
    assert len(run.cells) == 4
    assert all(cell.get("auto") for cell in run.cells)


def test_those_that_are_named_are_judged_alone(invoke, kept):
    named = ("--strategy", "qr_pinv", "--strategy", "auto")
    invoke("stability", "--operation", "det", "--cases", 2, *named, "--out", kept)
    (run,) = store.load(kept, "stability")
    assert all([each.strategy for each in cell] == ["qr_pinv", "auto"] for cell in run.cells)


def test_it_goes_on_where_it_stopped(invoke, kept):
    arguments = ("stability", "--operation", "solve", "--dtype", "float64", "--out", kept)
    invoke(*arguments, "--cases", 2)
    first = json.loads(kept.read_text())["cells"]
    invoke(*arguments, "--cases", 4)
    cells = json.loads(kept.read_text())["cells"]
    assert cells[:2] == first
    assert len({cell["case"] for cell in cells}) == 4


def test_ctrl_c_says_how_to_resume(invoke, kept, monkeypatch):
    def stops(cells, names):
        raise KeyboardInterrupt

    monkeypatch.setattr("strategies.cli.stability.judged_cells", stops)
    said = invoke("stability", "--cases", 2, "--out", kept, code=130).stderr
    assert f"0 of 2 cells are in {kept}; the same command resumes the run" in said


def test_an_unstable_auto_is_an_error(invoke):
    hard = "--operation", "lstsq", "--dtype", "float64", "--cases", 25
    with use("native"):
        assert '"auto" has a ratio of' in invoke("stability", *hard, code=1).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--operation", "qr"], "no measured operation is named 'qr'"),
        (["--dtype", "float16"], "--dtype float16: there is float32"),
        (["--device", "xyz", "--cases", "1"], "unknown device 'xyz'"),
        (["--strategy", "qr_pin"], "no strategy is named 'qr_pin'"),
    ],
)
def test_what_cannot_be_judged_is_refused(invoke, fails, arguments, said):
    fails(["stability", *arguments], said)


def test_a_file_of_another_draw_is_not_gone_on_with(invoke, fails, kept):
    arguments = ("stability", "--operation", "inv", "--dtype", "float64", "--out", kept)
    invoke(*arguments, "--cases", 1)
    found = json.loads(kept.read_text())
    found["cells"][0]["case"] = "inv 7x7 cond=1e3 seed=12345"
    kept.write_text(json.dumps(found))
    fails([*arguments, "--cases", 2], "is not of this draw")
