"""`pytest benchmarks --benchmark-compare`: the grid's cases, strategies side by side.

With `--benchmark-compare` a strategy that has become slower than the committed baseline fails the
run (see `benchmarks.baseline`); `--update-baseline` makes this run the baseline.

asv imports this module too, in environments without pytest: it is imported where it is used.
"""

import os
from typing import Any

import torch

from benchmarks import baseline
from strategies import operations, registry
from strategies.measuring import grid_cases, store
from strategies.measuring.clock import synchronized_timer
from strategies.policy import BASELINE
from strategies.selection import text

UPDATE = "--update-baseline"


def pytest_addoption(parser: Any) -> None:
    """The option that keeps this run as the baseline."""
    parser.getgroup("benchmark").addoption(
        UPDATE, action="store_true", help="Keep this run's cells as the committed baseline."
    )


def pytest_configure() -> None:
    """One thread: where several meet at barriers, a busy machine multiplies times at random."""
    torch.set_num_threads(1)


def pytest_generate_tests(metafunc: Any) -> None:
    """A test for each cell of the quick grid, or of the one that the environment names."""
    import pytest

    if "strategy" not in metafunc.fixturenames:
        return
    patience = {"timer": synchronized_timer, "max_time": 0.05, "min_rounds": 5}
    cells = [
        pytest.param(
            *(case, name),
            id=f"{case}-{name}".replace(" ", "_"),
            marks=pytest.mark.benchmark(group=str(case), **patience),
        )
        for case in grid_cases.timed(os.environ.get("BACKWARD_STRATEGIES_GRID", "quick"))
        for name in registry.distinct(operations.get(case.operation).stem)
    ]
    metafunc.parametrize(["case", "strategy"], cells)


def pytest_sessionfinish(session: Any) -> None:
    """Fails the run if a strategy has become slower, where that was asked."""
    if session.config.getoption(UPDATE):
        store.save(baseline.PATH, "baseline", baseline.session.values())
    elif session.exitstatus == 0 and session.config.getoption("benchmark_compare"):
        passed, _ = baseline.verdict()
        session.exitstatus = 0 if passed else 1


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Accuracy, memory and the gate's verdict, for which pytest-benchmark has no columns."""
    if not baseline.session:
        return
    terminalreporter.section("accuracy and memory")
    for cell in baseline.session.values():
        for each in cell:
            speedup, _, _ = cell.speedup(BASELINE, each.strategy)
            terminalreporter.write_line(
                f"{cell.case!s:40} {each.strategy:20} {text.times(speedup):>8} as fast as native"
                f"   error {text.number(each.error, '.1e'):>8}   peak {text.size(each.peak_bytes)}"
            )
    if config.getoption(UPDATE):
        terminalreporter.write_line(f"kept as the baseline: {baseline.PATH.name}")
    elif config.getoption("benchmark_compare"):
        terminalreporter.section("against the committed baseline")
        passed, lines = baseline.verdict()
        for line in lines:
            terminalreporter.write_line(line, red=not passed)
