"""A strategy of a separately installed package is found by everything, without a change here."""

import json
import os
from pathlib import Path

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


def test_it_is_offered_last_measured_by_asv_checked_and_drawn(tmp_path, package):
    (tmp_path / "lent_strategy.py").write_text(MODULE)
    package(tmp_path, "backward_strategies", "lent = lent_strategy:Lent")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    options = {"BACKWARD_STRATEGIES_GRID": "tiny", "OMP_NUM_THREADS": "1"}
    seen = json.loads(run_python(SCRIPT, PYTHONPATH=path, **options).stdout)
    assert seen["available"][-1] == "lent"
    assert "lent" in seen["asv"]
    assert 0 < seen["error"] < 1e-9
    assert seen["checked"] == "Status.PASSED"
    assert "color" in seen["look"]
