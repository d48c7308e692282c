import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "selection" / "data" / "asv"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "plots", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def results(tmp_path):
    return shutil.copytree(RESULTS, tmp_path / "results")


def test_what_can_be_drawn_is_and_what_cannot_is_told(results, tmp_path):
    done = run("--results", results, "--out", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    assert "peers: not drawn, no other library was timed" in " ".join(done.stdout.split())
    for name in ("time_against_size", "error_against_conditioning", "winners_map"):
        for suffix in (".png", ".svg"):
            assert (tmp_path / "figures" / f"{name}{suffix}").stat().st_size > 10_000


def test_other_libraries_alone_make_their_figure(tmp_path):
    row = {"operation": "inv", "m": 8, "n": 8, "rhs": 1, "batch": 0}
    row |= {"dtype": "float64", "device": "cpu", "status": "ok"}
    timed = {"strategy": "native", "backward_seconds": 1e-3, "speedup_over_native": 1.0}
    content = {"format": "backward-strategies peers", "version": 1, "arguments": {}}
    content["provenance"] = {"torch": "2"}
    (tmp_path / "peers.json").write_text(json.dumps(content | {"rows": [row | timed]}))
    done = run("--results", tmp_path, "--out", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    drawn = {path.stem for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"peers"}
    assert done.stdout.count("not drawn") == 9


def test_no_results_is_one_line_and_no_traceback(tmp_path):
    done = run("--results", tmp_path / "nowhere", "--out", tmp_path / "figures")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "figures").exists()
