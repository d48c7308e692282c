"""`--modes-table FILE`: keeps what the tests marked `mode` found, for `plots.modes`.

Such a test fills the columns its marker names, in the row of its `operation` and `strategy`, for the
numbers of its `dtype`. A report carries that along, from the processes of pytest-xdist too.
"""

from collections import defaultdict
from pathlib import Path

import pytest

from plots.modes import MODES, NUMBERS, Cell, save


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--modes-table", type=Path, metavar="FILE", help="keep the table of modes (make modes)"
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("modes_table", None)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path))


def pytest_itemcollected(item: pytest.Function) -> None:
    marker = item.get_closest_marker("mode")
    if marker is None:
        return
    case = item.callspec.params
    row = case["operation"].name, case["strategy"]
    numbers = NUMBERS[case["dtype"].is_complex]
    for mode in marker.args:
        assert mode in MODES, f"{item.nodeid}: no mode is called {mode!r}"
        item.user_properties.append(("cell", (*row, mode, numbers)))


class Recorder:
    """Collects the outcomes of a run and keeps them at its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[Cell, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call":
            return
        for name, value in report.user_properties:
            if name == "cell":
                self.outcomes[Cell(*value)].add(_outcome(report))

    def pytest_sessionfinish(self) -> None:
        save(self.outcomes, self.path)


def _outcome(report: pytest.TestReport) -> str:
    """Whether it passed or failed, or why it was skipped."""
    if not report.skipped:
        return report.outcome
    if hasattr(report, "wasxfail"):
        return report.wasxfail
    return report.longrepr[2].removeprefix("Skipped: ")
