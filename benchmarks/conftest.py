"""`pytest benchmarks --benchmark-compare`: the grid's cases, strategies side by side.

asv imports this module too, in environments without pytest: it is imported where it is used.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

from benchmarks import grid, machine
from strategies.measuring import synchronized_timer


def pytest_generate_tests(metafunc: Any) -> None:
    """A test for each cell of the quick grid, or of the one that the environment names."""
    if "strategy" not in metafunc.fixturenames:
        return
    chosen = grid.GRIDS[os.environ.get("BACKWARD_STRATEGIES_GRID", "quick")]
    cells = [
        (operation, *cell)
        for blocks in (chosen.single, chosen.batched)
        for operation, block in blocks.items()
        for cell in itertools.product(*block.params)
    ]
    metafunc.parametrize(["operation", *grid.PARAMETERS], cells)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Groups the strategies of a case, and sets the clock and its patience."""
    import pytest

    for item in items:
        if "strategy" not in getattr(item, "fixturenames", ()):
            continue
        values = item.callspec.params
        case = grid.case_of(values["operation"], *(values[name] for name in grid.PARAMETERS[1:]))
        item.add_marker(
            pytest.mark.benchmark(
                group=case.label, timer=synchronized_timer, max_time=0.3, min_rounds=5
            )
        )


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Records what asv records of the machine."""
    machine_info.update(machine.description())


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Accuracy and memory, which pytest-benchmark's own table has no column for."""
    benchmarks = config._benchmarksession.benchmarks
    if not benchmarks:
        return
    terminalreporter.section("accuracy and memory")
    for benchmark in benchmarks:
        extra = benchmark.extra_info
        terminalreporter.write_line(
            f"{benchmark.group:45} {benchmark.params['strategy']:22}"
            f" error {extra['error']:8.1e}   peak {extra['peak_bytes'] / 1e6:10.3f} MB"
        )
