"""A strategy of a separately installed package is found by everything, without a change here."""

import json
import os
from pathlib import Path

import pytest

from tests.process import run_python

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
def seen(tmp_path_factory, package):
    """What the script finds where the package is installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "lent_strategy.py").write_text(MODULE)
    package(site, "backward_strategies", "lent = lent_strategy:Lent")
    path = os.pathsep.join([str(site), str(ROOT)])
    options = {"BACKWARD_STRATEGIES_GRID": "tiny", "OMP_NUM_THREADS": "1"}
    return json.loads(run_python(SCRIPT, PYTHONPATH=path, **options).stdout)


def test_it_is_available_and_last(seen):
    assert seen["available"][-1] == "lent"


def test_asv_measures_it(seen):
    assert "lent" in seen["asv"]
    assert 0 < seen["error"] < 1e-9


def test_the_conformance_kit_checks_it(seen):
    assert seen["checked"] == "Status.PASSED"


def test_figures_have_a_look_for_it(seen):
    assert "color" in seen["look"]
