"""`backward-strategies sweep`: what each command says, without Slurm; tests/sweeps has the rest."""

import re
from pathlib import Path

import pytest
from by_hand import took

from strategies.measuring import Cell, Machine, Run, store
from strategies.sweeps import config
from strategies.sweeps.cells import cells_of
from strategies.sweeps.folder import Folder

ROOT = Path(__file__).parents[2]

SWEEP = """
grid = "tiny"
out = "swept"
[classes.epyc]
cpu = "EPYC"
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A sweep of which one cell is measured, and where there is no Slurm."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    folder = Folder(config.read(path))
    cell = cells_of(folder.sweep, "epyc")[0]
    found = Cell(cell.case, (took("native", 1e-3),))
    store.write(
        folder.result(cell), Run("grid", Machine("epyc"), {"seconds": 5.0, "node": "n1"}, (found,))
    )
    return path


def test_the_plan_says_what_is_left(invoke, sweep):
    said = invoke("sweep", "plan", sweep).stdout
    assert re.search(r"epyc +55 +0 +1 ", said)
    assert re.search(r"all +55 ", said)


def test_the_status_counts_cells_and_names_what_needs_attention(invoke, sweep):
    folder = Folder(config.read(sweep))
    folder.refuse("epyc", "n7", "its cpu is Xeon, not EPYC")
    damaged = cells_of(folder.sweep, "epyc")[1]
    folder.result(damaged).write_text('{"format": "backw')
    said = invoke("sweep", "status", sweep).stdout
    assert re.search(r"epyc +1 +0 +0 +0 +55", said)
    assert "refused: n7 is not of epyc: its cpu is Xeon, not EPYC" in said
    assert "to be measured again: " in said
    assert damaged.key in said


def test_what_is_collected_is_a_file_of_results(invoke, sweep):
    result = invoke("sweep", "collect", sweep)
    assert "1 cells measured, 0 failed, 55 remain" in result.stdout
    (run,) = store.load(sweep.parent / "swept" / "results", "grid")
    assert run.machine.name == "epyc"
    assert "node" not in run.arguments


def test_without_slurm_a_line_says_so(invoke, fails, sweep):
    (sweep.parent / "swept" / "jobs").mkdir()
    (sweep.parent / "swept" / "jobs" / "7.json").write_text(
        '{"number": "7", "machines": "epyc", "tasks": [["a"]]}'
    )
    for command in ("submit", "cancel"):
        fails(["sweep", command, sweep], "there is no squeue here")
    invoke("sweep", "status", sweep)


def test_an_unknown_class_is_named(invoke, fails, sweep):
    fails(["sweep", "local", sweep, "--class", "xeon"], "no class is named xeon")


def test_the_sweeps_of_the_documentation_can_be_read(tmp_path):
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])
    assert len(config.read(tmp_path / "sweep.toml").classes) == 3
    assert len(config.read(ROOT / "docs" / "full-grid.toml").classes) == 10
