"""Run a library's tests in one of four ways."""

import os
import subprocess
import sys
from pathlib import Path

from strategies.errors import UnusableFileError
from strategies_autoload import VARIABLE
from tests.clients.library import Library
from tests.clients.report import Report

TORCH, AFTER, BEFORE, INSTALLED = WAYS = "torch", "after", "before", "installed"
"""With torch alone; with the library imported after torch's functions were replaced; before that; with
operators installed when torch was imported."""

LIBRARY, WAY, REPORT = "CLIENT_LIBRARY", "CLIENT_WAY", "CLIENT_REPORT"
"""The variables that tell the plugin what to import, the way, and the file to write."""

_OPTIONS = (
    # Neither the settings of this repository, where the sources lie in it, nor a cache in them.
    *("-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"),
    # A test that takes longer than the timeout has failed.
    *("-n", "2", "--timeout=300", "--continue-on-collection-errors"),
    *("--quiet", "--tb=short", "--disable-warnings"),
)

_ENVIRONMENT = {
    # Two processes fill two cores, and who has calibrated what changes nothing.
    "OMP_NUM_THREADS": "1",
    "BACKWARD_STRATEGIES_CONFIG": os.devnull,
    "PYTHONPATH": str(Path(__file__).parents[2]),
    # Not by -p, which workers heed after they have imported conftest.py.
    "PYTEST_PLUGINS": "tests.clients.plugin",
}


def run(library: Library, way: str, sources: Path, path: Path) -> Report:
    """Runs the tests and writes the report; what pytest prints is beside it, as UnusableFileError says."""
    own = {LIBRARY: library.name, WAY: way, REPORT: str(path.resolve())}
    own[VARIABLE] = "1" if way == INSTALLED else "0"
    log = path.with_suffix(".log")
    with log.open("w") as printed:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *_OPTIONS, *library.tests],
            cwd=sources,
            env=os.environ | _ENVIRONMENT | library.environment | own,
            stdout=printed,
            stderr=printed,
            check=False,
        )
    if not path.exists():
        raise UnusableFileError(log, f"pytest ended with exit status {done.returncode}")
    return Report.read(path)
