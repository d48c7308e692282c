"""From what `recommend` says to the numbers in the file that it names, by hand."""

import ast
import itertools
import json
import math
import statistics

import pytest
from typer.testing import CliRunner

from strategies.cli import app

METHODS = {
    "time_backward": "backward_seconds",
    "time_forward_backward": "forward_backward_seconds",
    "track_speedup_over_native": "speedup_over_native",
    "track_gradient_error": "error",
    "track_peak_memory": "peak_bytes",
}


@pytest.fixture
def recommended(asv_folder):
    result = CliRunner().invoke(app, ["recommend", "--results", str(asv_folder), "--json"])
    return json.loads(result.stdout)["cells"]


def value_in(content, benchmark, parameters):
    """The number that asv keeps for a combination of parameters."""
    columns = dict(zip(content["result_columns"], content["results"][benchmark], strict=False))
    axes = [[ast.literal_eval(text) for text in axis] for axis in columns["params"]]
    combinations = [", ".join(map(str, each)) for each in itertools.product(*axes)]
    return columns["result"][combinations.index(parameters)]


@pytest.mark.parametrize("method", METHODS)
def test_every_number_is_in_the_row_that_is_named(recommended, asv_folder, method):
    seen = 0
    for strategy in itertools.chain(*(cell["strategies"] for cell in recommended)):
        said = strategy[METHODS[method]]
        baseline = strategy["strategy"] == "native" and method == "track_speedup_over_native"
        if said is None or baseline:  # native over itself is 1 by definition
            continue
        content = json.loads((asv_folder / strategy["source"]).read_text())
        kept = value_in(content, f"{strategy['benchmark']}.{method}", strategy["parameters"])
        assert math.isclose(said, kept)
        seen += 1
    assert seen > 20


def test_the_verdict_follows_from_those_numbers(recommended):
    for cell in recommended:
        eligible = [s for s in cell["strategies"] if s["verdict"] != "ineligible"]
        best = max(strategy["speedup_over_native"] for strategy in eligible)
        for strategy in eligible:
            assert math.isclose(strategy["ratio"], best / strategy["speedup_over_native"])
        (chosen,) = (s for s in cell["strategies"] if s["chosen"])
        assert chosen["ratio"] <= 1.1
        assert statistics.median(s["ratio"] for s in eligible) >= 1
