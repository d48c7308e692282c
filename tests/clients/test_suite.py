"""A suite is run as libraries' suites are, and its report says what differs."""

import pytest

from strategies.errors import UnusableFileError
from tests.clients import page, suite
from tests.clients.library import LIBRARIES, Library
from tests.clients.report import Report

LIBRARY = "from torch.linalg import det\n"
TESTS = """
import torch, strategies, client
from client import det

def test_both():
    assert det(torch.eye(3)) == 1
    assert torch.linalg.inv(torch.eye(3), out=torch.empty(3, 3)).sum() == 3
    assert torch.linalg.inv(torch.eye(3), out=torch.empty(3, 3)).sum() == 3

def test_of_torch_alone():
    assert not strategies.is_replaced()

def test_of_replaced():
    assert strategies.is_replaced()

def test_of_installed():
    assert "FastPath" in det(torch.eye(3, requires_grad=True)).grad_fn.name()
"""


def named(way):
    return f"test_client.py::test_of_{way}"


EVERY = {"test_client.py::test_both", *map(named, ("torch_alone", "replaced", "installed"))}


@pytest.fixture
def client(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "client.py").write_text(LIBRARY)
    (sources / "test_client.py").write_text(TESTS)

    def run(way):
        return suite.run(Library("client", ("test_client.py",)), way, sources, tmp_path / way)

    return run


def report(**outcomes):
    return Report(outcomes=outcomes, messages={}, ours={}, refusals={}, seconds=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "calls"), [("after", 2), ("before", 0)])
def test_calls_of_a_library_are_counted_by_who_computes_them(client, way, calls):
    found = client(way)
    failed = {named("torch_alone")} | ({named("installed")} if way == "before" else set())
    assert found.that("passed") == EVERY - failed
    assert found.that("failed") == failed
    assert found.messages.keys() >= {named("torch_alone")}
    assert found.ours.get("torch.linalg.det", 0) == calls
    assert found.refusals == {"torch.linalg.inv: it is called with out=": 2}


@pytest.mark.slow
def test_operators_are_installed_before_a_library_is_imported(client):
    found = client("installed")
    assert found.that("passed") == EVERY - {named("replaced")}
    assert found.that("failed") == {named("replaced")}
    assert named("installed") in client("torch").that("failed")


@pytest.mark.slow
def test_a_suite_that_cannot_be_run_has_no_report(tmp_path):
    with pytest.raises(UnusableFileError, match=r"pytest ended with exit status"):
        suite.run(Library("client", ("missing.py",)), "torch", tmp_path, tmp_path / "report")
    with pytest.raises(UnusableFileError):
        Report.read(tmp_path / "report")


def test_what_differs_is_told_unless_it_fails_with_torch_alone():
    by_torch = report(a="passed", b="failed", c="passed", d="failed", e="passed")
    replaced = report(a="passed", b="failed", c="failed", d="passed")
    assert replaced.broken(by_torch) == ["c", "e"]
    assert replaced.mended(by_torch) == ["d"]
    ways = {"torch": by_torch, "after": replaced, "before": by_torch, "installed": by_torch}
    assert page.differing({LIBRARIES[0]: ways}).splitlines() == [
        "- linear_operator, imported after, fails: `c`: `not run`",
        "- linear_operator, imported after, fails: `e`: `not run`",
        "- linear_operator, imported after, passes, which fails with torch alone: `d`",
    ]


def test_refusals_for_types_count_together():
    found, said = report(), "may define what torch's functions do"
    found.refusals.update({f"inv: Some {said}": 2, f"inv: Other {said}": 3})
    expected = f"| `inv: the type of an argument {said}` | 5 |"
    assert page.refusals([found]).splitlines()[-1] == expected
