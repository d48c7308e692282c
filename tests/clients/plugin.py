"""A pytest plugin: replaces torch's functions where that is the way, and reports outcomes and calls.

Environment variables say how, since workers of pytest-xdist import plugins before they have the options.
"""

import functools
import importlib
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import strategies
from strategies.integration import replacement
from tests.clients import suite
from tests.clients.report import Report

ours: Counter[str] = Counter()
refusals: Counter[str] = Counter()
outcomes: dict[str, str] = {}
messages: dict[str, str] = {}
began = time.perf_counter()


def count_refusal(record: logging.LogRecord) -> bool:
    """Counts a call that goes to PyTorch, by what is said of it."""
    assert isinstance(record.args, tuple)
    function, reason, _ = record.args
    refusals[f"{function}: {reason}"] += 1
    replacement._told.clear()  # so that the next call of the same place is told, too
    return False  # nor do others hear of it: tests look at what is logged


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls count as ours where it raises no error."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        ours[name] += 1
        return result

    return wrapped


def replace() -> None:
    """Replaces torch's functions by counted ones."""
    replacement.log.addFilter(count_refusal)
    replacement.log.setLevel(logging.INFO)
    for function in replacement.functions():
        # Before it is replaced for the first time, which binds what is called then.
        vars(function)["ours"] = counted(str(function), function.ours)
    strategies.replace_torch()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Begins before any file of the tests is imported."""
    way, library = os.environ[suite.WAY], os.environ[suite.LIBRARY]
    if way == suite.BEFORE:
        importlib.import_module(library)
    assert strategies.is_installed() == (way == suite.INSTALLED)
    if way in (suite.AFTER, suite.BEFORE):
        assert (library in sys.modules) == (way == suite.BEFORE)
        replace()


def pytest_runtest_setup() -> None:
    """Gives every test the same random numbers, whichever worker runs it."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keeps the outcome of a test, which is the worst of its phases."""
    if outcomes.get(report.nodeid) in (None, "passed"):
        outcomes[report.nodeid] = report.outcome
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = str(report.longrepr) if crash is None else crash.message
        messages.setdefault(report.nodeid, message.strip().partition("\n")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds what a worker has counted."""
    output = getattr(node, "workeroutput", {})
    ours.update(output.get("ours", {}))
    refusals.update(output.get("refusals", {}))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Hands on what a worker has counted, or writes the report if all tests were run."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output |= {"ours": dict(ours), "refusals": dict(refusals)}
    elif exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        found = Report(
            outcomes=outcomes,
            messages=messages,
            ours=dict(ours.most_common()),
            refusals=dict(refusals.most_common()),
            seconds=time.perf_counter() - began,
        )
        found.save(os.environ[suite.REPORT])
