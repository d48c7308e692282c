"""Every method of every suite runs on the tiny grid, for every strategy."""

import importlib
import itertools
import math
import pkgutil
import re

import pytest
import torch

import benchmarks
import strategies
from benchmarks import grid, suite
from strategies.measuring import Case

MODULES = ("lu", "pinv", "lstsq", "solve", "inv", "det")


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(suite, "_EFFORT", (1, 6, 0.0))


def tiny_params(instance, kind):
    if kind == "Conditioning":
        params = grid.TINY.conditioned_params(instance.operation)
    elif kind == "Sizes":
        params = grid.TINY.sized_params(instance.operation)
    else:
        params = getattr(grid.TINY, kind.lower())[instance.operation].params
    return list(itertools.product(*params[1:]))


def methods_of(instance):
    names = [name for name in dir(instance) if name.startswith(("time_", "track_"))]
    return [getattr(instance, name) for name in names]


@pytest.mark.parametrize("strategy", strategies.available())
@pytest.mark.parametrize("kind", ["Single", "Batched", "Conditioning", "Sizes", "Gallery"])
@pytest.mark.parametrize("module", MODULES)
def test_cells_run_or_are_not_applicable(module, kind, strategy):
    instance = getattr(importlib.import_module(f"benchmarks.{module}"), kind)()
    for params in tiny_params(instance, kind):
        try:
            instance.setup(strategy, *params)
        except NotImplementedError:
            assert "rank" in params[0]  # "rank=2", "matrix=half_rank"
            continue
        for method in methods_of(instance):
            result = method(strategy, *params)
            if method.__name__.startswith("time_"):
                continue
            values = result["samples"] if isinstance(result, dict) else [result]
            assert all(type(value) is float for value in values)
            assert all(0 < value < math.inf for value in values)
            if "gradient_error" in method.__name__:
                assert result < 1e-6


@pytest.mark.parametrize("kind", ["Single", "Batched", "Conditioning", "Sizes", "Gallery"])
@pytest.mark.parametrize("module", MODULES)
def test_what_asv_reads_is_there(module, kind):
    instance = getattr(importlib.import_module(f"benchmarks.{module}"), kind)()
    assert len(instance.params) == len(instance.param_names)
    assert instance.version
    assert instance.timeout > 0
    for method in methods_of(instance):
        assert method.__name__.startswith("time_") or method.unit


def test_abstract_suites_are_no_benchmarks():
    # asv instantiates every concrete class that it finds in a module.
    with pytest.raises(TypeError, match="abstract"):
        suite.Measured()


def test_what_is_too_much_for_native_has_no_speedup():
    instance = importlib.import_module("benchmarks.pinv").Single()
    instance.case = Case("pinv", (200_000, 4))
    assert math.isnan(instance.track_speedup_over_native("triangular_solve"))


def test_a_refused_case_is_not_applicable():
    def refuse(*_):
        raise torch.linalg.LinAlgError("singular")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "backward_of", refuse)
        with pytest.raises(NotImplementedError, match="singular"):
            suite.prepared(Case("inv", (3, 3), seed=99), "native")


def test_gradient_error_finds_a_wrong_gradient():
    case = Case("inv", (4, 4))
    (right,) = suite.backward_of(case, "native")()
    assert suite.gradient_error(case, lambda: (1.01 * right,)) == pytest.approx(0.01)


def test_gradient_error_is_finite_and_above_zero():
    case = Case("det", (1, 1))
    assert suite.gradient_error(case, lambda: (torch.full((1, 1), math.nan),)) == 1e6
    exact = suite.backward_of(case, "native")()
    assert suite.gradient_error(case, lambda: exact) > 0


def test_gradient_error_checks_some_of_a_large_batch():
    case = Case("inv", (3, 3), batch=50)
    assert suite.gradient_error(case, suite.backward_of(case, "native")) < 1e-14


def test_asv_finds_no_benchmark_outside_the_suites():
    modules = [
        importlib.import_module(f"benchmarks.{info.name}")
        for info in pkgutil.iter_modules(benchmarks.__path__)
        if info.name != "conftest"
    ]
    found = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in vars(module)
        if re.match(r"([Tt]ime|[Tt]rack|[Mm]em|[Pp]eakmem)(raw)?_", name)
    ]
    assert found == []
