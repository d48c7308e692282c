"""`backward-strategies record`, of a program that is not edited."""

import json
import signal
import sys

import pytest
import torch

from strategies.integration.workload import Workload

PROGRAM = """
import os, signal, sys, torch
from torch.linalg import inv
for _ in range(5):
    inv(torch.eye(3, requires_grad=True)).sum().backward()
print("done")
{end}
"""


def program(folder, end=""):
    (folder / "program.py").write_text(PROGRAM.format(end=end))
    return folder / "program.py"


def test_the_table_and_the_file_say_what_was_called(main, tmp_path, kept):
    path = program(tmp_path)
    result = main("record", "--out", kept, path, "--lr", 1)
    assert result.stdout == "done\n"
    assert "torch.linalg.inv 3x3 float32 cpu      5" in result.stderr
    assert f"{path}:5" in result.stderr
    workload = Workload.read(kept)
    assert workload.program == (str(path), "--lr", "1")
    (call,) = workload.calls
    assert (call.count, call.backwards, call.case) == (5, 5, "inv 3x3 float32 cpu")
    assert json.loads(kept.read_text())["machine"]["torch"] == torch.__version__


@pytest.mark.parametrize("form", ["-m", "-c"])
def test_a_module_and_code_are_recorded_as_such(main, tmp_path, kept, monkeypatch, form):
    monkeypatch.chdir(program(tmp_path).parent)
    what = "program" if form == "-m" else PROGRAM.format(end="")
    main("record", "--out", kept, form, what, "--lr")
    workload = Workload.read(kept)
    assert workload.program == (form, what, "--lr")
    assert workload.calls[0].count == 5


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("sys.exit(3)", 3, []),
        ("raise ValueError('mine')", 1, ["Traceback", "ValueError: mine"]),
        ("raise KeyboardInterrupt", 1, ["Traceback", "KeyboardInterrupt"]),
    ],
)
def test_a_program_that_ends_early_is_reported_after_what_it_says(
    main, tmp_path, kept, end, code, told
):
    result = main("record", "--out", kept, program(tmp_path, end), code=code)
    places = [result.stderr.index(said) for said in [*told, "torch.linalg.inv 3x3", "kept in"]]
    assert places == sorted(places)
    assert Workload.read(kept).calls[0].count == 5


@pytest.mark.skipif(sys.platform == "win32", reason="there, Ctrl-C is no signal")
def test_ctrl_c_ends_it_as_it_ends_python(tmp_path, python, kept):
    handled = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell may ignore it
    path = program(tmp_path, f"{handled}\nos.kill(os.getpid(), signal.SIGINT)")
    ours, of_python = python("-m", "strategies", "record", "--out", kept, path), python(path)
    assert ours.returncode == of_python.returncode == -signal.SIGINT
    assert ours.stderr.startswith(of_python.stderr)
    assert Workload.read(kept).calls[0].count == 5


@pytest.mark.skipif(sys.platform == "win32", reason="there, no program hears SIGTERM")
def test_a_terminated_program_is_reported(tmp_path, python, kept):
    path = program(tmp_path, "os.kill(os.getpid(), signal.SIGTERM)")
    assert python("-m", "strategies", "record", "--out", kept, path).returncode == 143
    assert Workload.read(kept).calls[0].count == 5


def test_a_missing_file_leaves_what_was_kept(main, fails, tmp_path, kept):
    kept.write_text("another")
    fails(["record", "--out", kept, tmp_path / "none.py"], "there is no file", by=main)
    assert kept.read_text() == "another"


def test_a_file_that_cannot_be_written_is_one_line_before_the_program(main, fails, tmp_path):
    end = f"open({str(tmp_path / 'ran')!r}, 'w')"
    out = tmp_path / "none" / "file.json"
    fails(["record", "--out", out, program(tmp_path, end)], "none", by=main)
    assert not (tmp_path / "ran").exists()


def test_its_calls_can_be_measured(main, invoke, tmp_path, kept):
    measured = tmp_path / "measured.json"
    main("record", "--out", kept, program(tmp_path))
    invoke("measure", measured, "--workload", kept, "--budget", 0)
    (cell,) = json.loads(measured.read_text())["cells"]
    assert cell["case"] == "inv 3x3 float32 cpu"
