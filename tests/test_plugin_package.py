"""A strategy of a separately installed package is found by everything, without a change here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MODULE = """
from strategies.builtin.triangular_solve import TriangularSolve

class Lent(TriangularSolve):
    name = "lent"
    summary = "triangular_solve under another name"
"""

SCRIPT = """
import json, sys
import strategies
import strategies.testing
from benchmarks import suites
from plots import style

Single = suites.suites_of("pinv")["pinv.Single"]
suite = Single()
check = next(iter(strategies.testing.checks()))
case = ("lent", *[values[0] for values in Single.params[1:]])
suite.setup(*case)
json.dump(
    {
        "available": strategies.available(),
        "asv": Single.params[0],
        "error": suite.track_gradient_error(*case),
        "look": sorted(style.look("lent")),
        "checked": str(strategies.testing.outcome_of(check, strategies.get("lent")).status),
    },
    sys.stdout,
)
"""


@pytest.fixture(scope="module")
def seen_with_the_package_installed(tmp_path_factory) -> dict[str, object]:
    site = tmp_path_factory.mktemp("site")
    (site / "lent_strategy.py").write_text(MODULE)
    metadata = site / "lent_strategy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lent-strategy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[backward_strategies]\nlent = lent_strategy:Lent\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "BACKWARD_STRATEGIES_GRID": "tiny",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_available_and_last(seen_with_the_package_installed):
    assert seen_with_the_package_installed["available"][-1] == "lent"


def test_asv_measures_it(seen_with_the_package_installed):
    assert "lent" in seen_with_the_package_installed["asv"]
    assert 0 < seen_with_the_package_installed["error"] < 1e-9


def test_the_conformance_kit_checks_it(seen_with_the_package_installed):
    assert seen_with_the_package_installed["checked"] == "Status.PASSED"


def test_figures_have_a_look_for_it(seen_with_the_package_installed):
    assert "color" in seen_with_the_package_installed["look"]
