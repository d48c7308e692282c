"""What is compiled ahead of calls: all, in processes where that is worth it, and only once."""

import importlib
import itertools
import pkgutil
import subprocess
import sys

import pytest
import torch

from strategies import warmup
from strategies.kernels import cpu
from strategies.kernels.cpu import ahead, compilation
from strategies.kernels.cpu.kernel import CPUKernel
from strategies.kernels.cpu.lanes import LANES, Problem


@pytest.fixture
def _two_loops(monkeypatch):
    """That compile in a moment, in two processes."""
    names = "condition.has_grown", "inspection.inverse_order"
    loops = [(name, torch.float64) for name in names]
    monkeypatch.setattr(ahead, "_loops", lambda _: iter(loops))
    monkeypatch.setattr(ahead.extension, "build", lambda: False)
    monkeypatch.setattr(ahead, "_WORTH_A_PROCESS", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


@pytest.fixture
def _as_in_a_new_process(monkeypatch, tmp_path):
    monkeypatch.setenv("BACKWARD_STRATEGIES_CACHE", str(tmp_path))
    _forget()
    yield
    _forget()


def _forget():
    compilation.entry.cache_clear()
    compilation._folder.cache_clear()


class Counted(list):
    """What progress was told."""

    def __call__(self, *numbers):
        self.append(numbers)

    def is_complete(self):
        steps = len(self) - 1
        return self == [(done, steps) for done in range(steps + 1)]


@pytest.mark.usefixtures("_as_in_a_new_process", "_two_loops")
def test_what_was_not_kept_is_compiled_by_other_processes_and_told(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "_write", lambda *_: pytest.fail("compiled here"))
    told, counted = ["condition.has_grown float64", "inspection.inverse_order float64"], Counted()
    assert warmup(progress=counted) == told
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2
    assert counted.is_complete()
    monkeypatch.setattr(ahead.extension, "load", object)
    assert warmup(progress=lambda *_: pytest.fail("nothing is missing")) == []


@pytest.mark.usefixtures("_as_in_a_new_process", "_two_loops")
def test_what_other_processes_do_not_get_done_is_compiled_here(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    counted = Counted()
    assert len(warmup(progress=counted)) == 2
    assert counted.is_complete()
    assert all(compilation.is_kept(*loop) for loop in ahead._loops(()))


def test_every_kernel_is_among_the_loops():
    loops = {name for name, _ in ahead._loops([torch.float32])}
    for module in pkgutil.iter_modules(cpu.__path__):
        for found in vars(importlib.import_module(f"{cpu.__name__}.{module.name}")).values():
            if isinstance(found, CPUKernel):
                assert found._loop in loops


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_every_loop_of_a_lane_is_among_the_loops(dtype):
    loops = {name for name, _ in ahead._loops([dtype])}
    sizes = [(n, n) for n in range(1, 34)] + [(9, 4), (4, 9), (300, 4), (100, 100), (600, 600)]
    for operations, (m, n), matrices in itertools.product(LANES.values(), sizes, (1, 20)):
        problem = Problem(m, n, 1, False, dtype, matrices)
        lanes = [lane for make in operations.values() if (lane := make(problem))]
        assert {name for lane in lanes for name in (lane.forward, lane.backward)} <= loops


def test_a_loop_over_integers_is_compiled_for_the_dtype_that_calls_ask_for():
    loops = list(ahead._loops([torch.complex64]))
    dtypes = {dtype for name, dtype in loops if name == "inspection.inverse_order"}
    assert dtypes == {torch.float64}
    assert {dtype for name, dtype in loops if name != "inspection.inverse_order"} == {
        torch.complex64
    }


def test_other_dtypes_are_refused_by_name():
    with pytest.raises(ValueError, match=r"not torch\.float16"):
        warmup([torch.float16])


def test_where_nothing_may_be_compiled_nothing_is():
    code = "import strategies; print(strategies.warmup())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.slow
def test_all_loops_can_be_compiled_for_all_dtypes():
    warmup()
    assert warmup() == []
