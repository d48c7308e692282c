"""`pytest benchmarks --benchmark-compare`: the grid's cases, strategies side by side.

With `--benchmark-compare` a strategy that has become slower than the committed baseline fails the
run (see `benchmarks.baseline`); `--update-baseline` makes this run the baseline.

asv imports this module too, in environments without pytest: it is imported where it is used.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import defaultdict
from typing import Any

import torch

from benchmarks import baseline, grid, machine
from strategies.measuring import synchronized_timer

UPDATE = "--update-baseline"


def pytest_addoption(parser: Any) -> None:
    """The option that keeps this run as the baseline."""
    parser.getgroup("benchmark").addoption(
        UPDATE, action="store_true", help="Keep this run's ratios as the committed baseline."
    )


def pytest_configure() -> None:
    """One thread: where several meet at barriers, a busy machine multiplies times at random."""
    torch.set_num_threads(1)


def pytest_generate_tests(metafunc: Any) -> None:
    """A test for each cell of the quick grid, or of the one that the environment names."""
    if "strategy" not in metafunc.fixturenames:
        return
    chosen = grid.GRIDS[os.environ.get("BACKWARD_STRATEGIES_GRID", "quick")]
    cells = [
        (operation, strategy, *cell)
        for blocks in (chosen.single, chosen.batched)
        for operation, block in blocks.items()
        for cell in itertools.product(*block.params[1:])
        for strategy in block.params[0]
    ]
    metafunc.parametrize(["operation", *grid.PARAMETERS], cells)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Groups the strategies of a case, and sets the clock and its patience."""
    import pytest

    for item in items:
        if "benchmark" not in getattr(item, "fixturenames", ()):
            continue
        values = item.callspec.params
        case = grid.case_of(values["operation"], *(values[name] for name in grid.PARAMETERS[1:]))
        item.add_marker(
            pytest.mark.benchmark(
                group=case.label, timer=synchronized_timer, max_time=0.05, min_rounds=5
            )
        )


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Records what asv records of the machine."""
    machine_info.update(machine.description())


def pytest_sessionfinish(session: Any) -> None:
    """Fails the run if a strategy has become slower, where that was asked."""
    measured = _ratios(session.config)
    if session.config.getoption(UPDATE):
        baseline.save(measured, machine.description())
    elif session.exitstatus == 0 and _slower(session.config):
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Accuracy, memory and the gate's verdict, for which pytest-benchmark has no columns."""
    benchmarks = config._benchmarksession.benchmarks
    if not benchmarks:
        return
    terminalreporter.section("accuracy and memory")
    for benchmark in benchmarks:
        extra = benchmark.extra_info
        terminalreporter.write_line(
            f"{benchmark.group:40} {benchmark.params['strategy']:20}"
            f" {extra['speedup_over_native']:8.2f} × native   error {extra['error']:8.1e}"
            f"   peak {extra['peak_bytes'] / 1e6:9.3f} MB"
        )
    if config.getoption(UPDATE):
        terminalreporter.write_line(f"kept as the baseline: {baseline.PATH.name}")
    elif config.getoption("benchmark_compare"):
        terminalreporter.section("against the committed baseline")
        slower = _slower(config)
        for line in slower:
            terminalreporter.write_line(line, red=True)
        if not slower:
            most = max(_slowdowns(config).values(), default=math.nan)
            terminalreporter.write_line(
                f"no strategy has become slower: {most:.2f}× at most, {baseline.SLOWER}× fails"
            )


def _ratios(config: Any) -> baseline.Ratios:
    ratios: baseline.Ratios = defaultdict(dict)
    for benchmark in config._benchmarksession.benchmarks:
        if benchmark.params["strategy"] == "native":
            continue
        speedup = benchmark.extra_info["speedup_over_native"]
        ratios[benchmark.group][benchmark.params["strategy"]] = 1 / speedup
    return ratios


def _slowdowns(config: Any) -> dict[tuple[str, str], float]:
    return baseline.slowdowns(baseline.load(), _ratios(config))


def _slower(config: Any) -> list[str]:
    """What has become slower, in words, if a comparison was asked for."""
    if not config.getoption("benchmark_compare"):
        return []
    return [
        f"{strategy} takes {slowdown:.2f} times as long in {operation} as it did"
        for (strategy, operation), slowdown in _slowdowns(config).items()
        if slowdown > baseline.SLOWER
    ]
