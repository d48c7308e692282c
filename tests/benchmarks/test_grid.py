"""Every grid is well formed and what it needs to be."""

import itertools
import math
import os
import subprocess
import sys
import types

import pytest
import torch

import strategies
from benchmarks import grid

OPERATIONS = ("lu_factor", "pinv", "lstsq", "solve", "inv", "det")
NAMES = tuple(grid.GRIDS)


def cases_of(name, operation):
    chosen = grid.GRIDS[name]
    for block in (chosen.single[operation], chosen.batched[operation]):
        for _, *params in itertools.product(*block.params):
            yield grid.case_of(operation, *params)
    for _, *params in itertools.product(*chosen.gallery[operation].params):
        yield grid.case_of(operation, *params)
    conditioned = (chosen.conditioned_params(operation), chosen.sized_params(operation))
    for _, *params in itertools.chain(*(itertools.product(*block) for block in conditioned)):
        yield grid.case_of(operation, *params)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_combination_is_a_case(name, operation):
    assert len(set(cases_of(name, operation))) >= 4


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["tiny", "quick"])
def test_small_grids_have_errors_everywhere(name, operation):
    assert all(map(grid.has_affordable_reference, cases_of(name, operation)))


def test_full_grid_spans_what_is_promised():
    cases = [case for operation in OPERATIONS for case in cases_of("full", operation)]
    sizes = {size for case in cases for size in case.shape}
    assert {4, 2048} <= sizes
    assert max(case.batch for case in cases) == 100_000
    assert {case.dtype for case in cases} == {
        torch.float32, torch.float64, torch.complex64, torch.complex128,
    }  # fmt: skip
    assert {case.shape[0] < case.shape[1] for case in cases} == {True, False}
    assert any(case.rank for case in cases)


def test_the_cpu_grid_has_cells_near_every_held_out_case():
    from strategies.policy import position
    from strategies.selection.held_out import draw_cases

    points = {}
    for operation in OPERATIONS:
        cells = [case for case in cases_of("cpu", operation) if case.rank is None]
        points[operation] = [position(*c.shape, c.rhs, c.batch) for c in cells if not c.matrix]
    distances = [
        min(math.dist(position(*c.shape, c.rhs, c.batch), p) for p in points[c.operation])
        for c in draw_cases(300, "cpu", 0)
    ]
    # In log₂: a factor of four in size and of twelve in batch lie between neighbouring cells.
    assert max(distances) < 5
    assert sorted(distances)[150] < 2


def test_what_is_too_much_work_for_a_grid_is_not_applicable(monkeypatch):
    monkeypatch.setattr(grid, "CHOSEN", grid.CPU)
    assert grid.is_affordable(grid.case_of("lu_factor", "64x64", 160, "float64", "cpu"), "native")
    assert not grid.is_affordable(
        grid.case_of("lu_factor", "64x64", 2000, "float64", "cpu"), "native"
    )


def test_strategies_are_the_registered_ones():
    assert grid.QUICK.single["pinv"].params[0] == list(strategies.available())


def test_without_cuda_no_device_but_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert grid.devices() == ["cpu"]


def test_every_cuda_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert grid.devices() == ["cpu", "cuda:0", "cuda:1"]


def test_native_is_spared_what_would_exhaust_memory():
    case = grid.case_of("pinv", "200000x4", 0, "float64", "cpu")
    assert not grid.is_affordable(case, "native")
    assert grid.is_affordable(case, "triangular_solve")
    assert grid.is_affordable(grid.case_of("pinv", "16384x32", 0, "float64", "cpu"), "native")


@pytest.mark.parametrize("count", [0, 1])
def test_the_largest_cases_are_there_with_a_cuda_device_only(count, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert ("8192x8192" in grid.FULL.single["lu_factor"].params[1]) == bool(count)
    assert (1_000_000 in grid.FULL.batched["solve"].params[2]) == bool(count)


@pytest.mark.parametrize(("device", "affordable"), [("cpu", False), ("cuda:0", True)])
def test_the_largest_cases_are_measured_on_cuda_only(device, affordable):
    case = grid.case_of("lu_factor", "8192x8192", 0, "float64", device)
    assert grid.is_affordable(case, "native") == affordable


@pytest.mark.parametrize(("gigabytes", "affordable"), [(40, False), (140, True)])
def test_native_is_spared_what_would_exhaust_the_device(gigabytes, affordable, monkeypatch):
    properties = types.SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    case = grid.case_of("pinv", "65536x64", 0, "float64", "cuda:0")
    assert grid.is_affordable(case, "native") == affordable


def test_unknown_grid_is_refused(monkeypatch):
    monkeypatch.setenv("BACKWARD_STRATEGIES_GRID", "huge")
    with pytest.raises(ValueError, match="'huge': known grids are tiny, quick, cpu, full"):
        grid.chosen_name()


def test_imports_compute_nothing():
    # A forked process deadlocks if torch computed, and started threads, before the fork. An empty
    # placeholder is no computation.
    code = """
import pkgutil
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class Refuse(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert func.overloadpacket is torch.ops.aten.empty, f"{func} at import"
        return func(*args, **(kwargs or {}))
with Refuse():
    import benchmarks
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
        __import__(module.name)
assert not torch.cuda.is_initialized()
"""
    environment = {**os.environ, "BACKWARD_STRATEGIES_GRID": "full"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_imports_need_nothing_that_asvs_environment_lacks():
    # What asv.conf.json does not name; discovery stops at the first module that cannot be imported.
    code = """
import pkgutil, sys
sys.modules.update(dict.fromkeys(["jax", "lineax", "matplotlib", "pytest"]))
import benchmarks
for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks."):
    __import__(module.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
