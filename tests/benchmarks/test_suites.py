"""Every method of every suite runs on the tiny grid; asv finds all suites, and nothing else."""

import itertools
import json
import math
from pathlib import Path

import pytest

from benchmarks import suites
from benchmarks.steps import Step
from strategies import operations
from strategies.measuring.case import Case
from strategies.operations.grids import GRIDS
from tests.process import run_python

ROOT = Path(__file__).parents[2]
KINDS = ["Single", "Batched", "Conditioning", "Sizes", "Gallery"]
STRATEGIES = ("native", "triangular_solve")


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(suites, "_EFFORT", (1, 6, 0.0))


def methods_of(suite):
    return [getattr(suite, name) for name in dir(suite) if name.startswith(("time_", "track_"))]


@pytest.mark.parametrize("operation", operations.measured())
def test_cells_run_or_are_not_applicable(operation):
    for name, kind in suites.suites_of(operation, "tiny").items():
        suite = kind()
        for params in itertools.product(STRATEGIES, *kind.params[1:]):
            try:
                suite.setup(*params)
            except NotImplementedError:
                assert "rank" in params[1]  # "rank=2", "matrix=half_rank"
                continue
            for method in methods_of(suite):
                assert method.benchmark_name == f"{name}.{method.__name__}"
                result = method(*params)
                if method.__name__.startswith("track_"):
                    assert type(result) is float
                    assert 0 < result < (1e-6 if "error" in method.__name__ else math.inf)


@pytest.mark.parametrize("grid", GRIDS)
def test_what_asv_reads_is_there(grid):
    for operation in operations.measured():
        made = suites.suites_of(operation, grid)
        assert list(made) == [f"{operation}.{kind}" for kind in KINDS]
        for suite in made.values():
            assert len(suite.params) == len(suite.param_names)
            assert all(suite.params)
            for method in methods_of(suite):
                assert method.__name__.startswith("time_") or method.unit


def test_what_is_too_much_for_native_has_no_speedup():
    suite = suites.suites_of("pinv", "full")["pinv.Single"]()
    suite.case = Case("pinv", (200_000, 4))
    assert math.isnan(suite.track_speedup_over_native("triangular_solve"))


def test_asv_finds_every_suite_and_nothing_else_without_computing():
    # A forked process deadlocks if torch computed, and started threads, before the fork. An empty
    # placeholder is no computation. What asv.conf.json does not name cannot be imported there.
    code = """
import dataclasses, json, sys
sys.modules.update(dict.fromkeys(["jax", "lineax", "matplotlib", "pandas", "pytest"]))
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class Refuse(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.overloadpacket is torch.ops.aten.empty, f"{func} at import"
        return func(*args, **(kwargs or {}))
with Refuse():
    from strategies import operations
    record = operations.get("inv")
    with operations.registered(dataclasses.replace(record, name="toy", policy_operation="toy")):
        from asv_runner.discovery import disc_benchmarks
        print(json.dumps([benchmark.name for benchmark in disc_benchmarks("benchmarks")]))
assert not torch.cuda.is_initialized()
"""
    environment = {"BACKWARD_STRATEGIES_GRID": "tiny", "PYTHONPATH": str(ROOT)}
    found = json.loads(run_python(code, cwd=ROOT, **environment).stdout)
    made = [
        method.benchmark_name
        for operation in operations.measured()
        for suite in suites.suites_of(operation).values()
        for method in methods_of(suite)
    ]
    programs = [method.benchmark_name for method in methods_of(Step)]
    assert sorted(name for name in found if not name.startswith("toy.")) == sorted(made + programs)
    of_toy = [name for name in found if name.startswith("toy.")]
    assert len(of_toy) == len(made) / len(operations.measured())


def test_an_unknown_grid_is_refused(monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_GRID", "huge")
    with pytest.raises(ValueError, match="'huge': known grids are tiny, quick, cpu, full"):
        suites._chosen_grid()
