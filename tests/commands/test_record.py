"""`backward-strategies record`, of a program that nobody adapted."""

import json

import pytest
import torch

from strategies.recording import read

PROGRAM = """
import sys, torch
from torch.linalg import inv
for _ in range(5):
    inv(torch.eye(3, requires_grad=True)).sum().backward()
print("done")
sys.exit({code})
"""


@pytest.fixture
def program(tmp_path):
    def program(code=0):
        (tmp_path / "program.py").write_text(PROGRAM.format(code=code))
        return tmp_path / "program.py"

    return program


def test_the_table_and_the_file_say_what_was_called(invoke, program, tmp_path):
    path, kept = program(), tmp_path / "workload.json"
    result = invoke("record", "--out", kept, path, "--lr", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout == "done\n"
    assert "torch.linalg.inv 3x3 float32 cpu      5" in result.stderr
    assert f"{path}:5" in result.stderr
    workload = read(kept)
    assert workload.program == (str(path), "--lr", "1")
    (call,) = workload.calls
    assert (call.count, call.backwards, call.case) == (5, 5, "inv 3x3 float32 cpu")
    assert json.loads(kept.read_text())["machine"]["torch"] == torch.__version__


def test_a_program_that_exits_is_reported_all_the_same(invoke, program):
    result = invoke("record", program(code=3))
    assert result.exit_code == 3
    assert "torch.linalg.inv" in result.stderr


def test_a_file_that_cannot_be_written_is_one_line(invoke, program, tmp_path):
    result = invoke("record", "--out", tmp_path / "none" / "file.json", program())
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_its_calls_can_be_measured(invoke, program, tmp_path):
    kept, measured = tmp_path / "workload.json", tmp_path / "measured.json"
    invoke("record", "--out", kept, program())
    result = invoke("measure", measured, "--workload", kept, "--budget", 0)
    assert result.exit_code == 0, result.output
    (cell,) = json.loads(measured.read_text())["cells"]
    assert cell["case"] == "inv 3x3 float32 cpu"
