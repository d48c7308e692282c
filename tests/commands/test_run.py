"""`backward-strategies run`, of programs that nobody adapted."""

import sys

import pytest

import strategies

PROGRAM = """
import sys, torch
from torch.linalg import inv
print(__name__, sys.argv, inv(torch.eye(2, requires_grad=True)).grad_fn.name())
"""


@pytest.fixture
def program(tmp_path):
    """A file of this text."""

    def program(text=PROGRAM):
        (tmp_path / "program.py").write_text(text)
        return tmp_path / "program.py"

    return program


def test_a_script_runs_as_by_itself_with_functions_replaced(invoke, program):
    path, before = program(), (sys.argv, sys.path[:])
    result = invoke("run", path, "--lr", "0.1", "-v")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"__main__ {[str(path), '--lr', '0.1', '-v']} ")
    assert "FastLane" in result.stdout
    assert not strategies.is_replaced()
    assert (sys.argv, sys.path) == before


def test_a_module_runs_as_by_python(invoke, program, monkeypatch):
    monkeypatch.chdir(program().parent)
    result = invoke("run", "-m", "program", "more")
    assert result.stdout.startswith("__main__ [")
    assert "'more'] " in result.stdout
    assert "FastLane" in result.stdout


def test_a_script_imports_its_neighbours(invoke, program):
    path = program("import neighbour")
    path.with_name("neighbour.py").write_text("print('found')")
    assert invoke("run", path).stdout == "found\n"


def test_its_exit_code_and_its_errors_are_the_programs_own(invoke, program):
    assert invoke("run", program("raise SystemExit(3)")).exit_code == 3
    assert isinstance(invoke("run", program("raise ValueError('mine')")).exception, ValueError)


def test_verbose_says_what_goes_to_torch_and_where(invoke, program):
    path = program("import torch\ntorch.linalg.inv(torch.eye(2), out=torch.empty(2, 2))")
    assert invoke("run", path).stderr == ""
    said = invoke("run", "-v", path).stderr
    assert f"torch.linalg.inv goes to PyTorch: it is called with out= ({path}:2)" in said


def test_a_missing_file_is_one_line(invoke, fails, tmp_path):
    fails(invoke("run", tmp_path / "none.py"), "there is no file", "none.py")
