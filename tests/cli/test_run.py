"""`backward-strategies run`, of programs that are not edited."""

import subprocess
import sys

import pytest

import strategies

PROGRAM = """
import sys, threading, torch
from torch.linalg import inv

def outlast():
    threading.main_thread().join()
    print("later", inv is torch.linalg.inv)

print(sys.argv[1:], inv.__module__)
inv(torch.eye(2), out=torch.empty(2, 2))
threading.Thread(target=outlast).start()
raise ValueError("mine")
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture(scope="module")
def process(path):
    """What has run it."""
    command = [sys.executable, "-m", "strategies", "run", "-v", str(path), "--lr", "0.1", "-v"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_program_has_its_arguments_and_functions_that_are_replaced(process):
    assert (
        process.stdout.splitlines()[0] == "['--lr', '0.1', '-v'] strategies.integration.replacement"
    )


def test_they_stay_replaced_in_threads_that_outlast_it(process):
    assert process.stdout.splitlines()[1:] == ["later True"]


def test_verbose_says_what_goes_to_torch_and_where(process, path):
    said = f"torch.linalg.inv goes to PyTorch: it is called with out= ({path}:10)"
    assert process.stderr.splitlines()[0] == f"backward-strategies: {said}"


def test_its_exception_is_told_as_by_python(process, path, python):
    by_python = python(path)
    assert process.stderr.splitlines()[1:] == by_python.stderr.splitlines()
    assert process.returncode == by_python.returncode


def test_a_missing_file_is_one_line(main, fails, tmp_path):
    fails(["run", tmp_path / "none.py"], "there is no file", "none.py", by=main)
    assert not strategies.is_replaced()


def test_a_program_is_not_a_module_and_code(main, fails):
    fails(["run", "-m", "-c", "pass"], "-m", "-c", by=main)
