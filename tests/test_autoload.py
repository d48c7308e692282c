"""`import torch` alone installs the operators, where the environment asks for it."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.autograd.plain_calls import needs_extension
from tests.process import run_python

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sys, torch
A = torch.eye(2, requires_grad=True)
print(torch.linalg.inv(A).grad_fn.name(), "strategies" in sys.modules)
"""


@pytest.fixture
def output(tmp_path, package):
    """What a program writes, where the entry points of this package are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ((name, target),) = project["entry-points"]["torch.backends"].items()
    package(tmp_path, "torch.backends", f"{name} = {target}")

    def run(code, **variables):
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        return run_python(code, PYTHONPATH=path, OMP_NUM_THREADS="1", **variables)

    return run


@needs_extension
@pytest.mark.parametrize("first", ["", "import strategies"], ids=["torch", "strategies"])
def test_operators_are_installed_by_the_import(output, first):
    done = output(first + PROGRAM, BACKWARD_STRATEGIES_INSTALL="1")
    assert "FastPath" in done.stdout
    assert done.stderr == ""


def test_nothing_is_imported_where_nobody_asks(output):
    done = output(PROGRAM)
    assert done.stdout.split() == ["LinalgInvExBackward0", "False"]


def test_another_value_is_told(output):
    done = output(PROGRAM, BACKWARD_STRATEGIES_INSTALL="yes")
    assert "False" in done.stdout
    assert "BACKWARD_STRATEGIES_INSTALL=yes is ignored; 1 installs operators" in done.stderr


def test_where_it_is_impossible_a_warning_says_so(output, tmp_path):
    empty = {"BACKWARD_STRATEGIES_CACHE": str(tmp_path / "empty")}
    done = output(PROGRAM, BACKWARD_STRATEGIES_INSTALL="1", **empty)
    assert "LinalgInvExBackward0" in done.stdout
    assert "BACKWARD_STRATEGIES_INSTALL=1 has no effect: install needs the fast path" in done.stderr
