"""A sweep on this machine, with cells that crash, hang and raise, in processes of their own."""

import os
import signal
import time

import faults
import pytest

from strategies.measuring import Status, store
from strategies.sweeps import config
from strategies.sweeps.collect import collect
from strategies.sweeps.folder import Folder, State
from strategies.sweeps.plan import survey

SWEEP = """
out = "swept"
workload = "workload.json"
budget = 0.0
timeout = 8.0

[classes.here]
cpu = "."
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch, package):
    """Makes a sweep of cases, with a plug-in that has faults, and returns what runs it."""
    faults.install(tmp_path / "site", package)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), os.pathsep)

    def made(*cases, text=SWEEP):
        (tmp_path / "sweep.toml").write_text(text)
        faults.save_workload(tmp_path / "workload.json", list(cases))
        return Folder(config.read(tmp_path / "sweep.toml"))

    return made


def begin(folder):
    return faults.begin("sweep", "local", folder.path.parent / "sweep.toml")


def run(folder):
    process = begin(folder)
    said, _ = process.communicate(timeout=120)
    return process.returncode, said


def states(folder, machines="here"):
    return {str(cell.case): known.state for cell, known in survey(folder)[machines]}


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_cells_that_crash_hang_or_raise_fail_alone_and_say_why(sweep):
    good = ["inv 8x8 float64 cpu", "det 9x9 float64 cpu"]
    folder = sweep(*faults.BAD, *good)
    code, said = run(folder)
    assert code == 0, said
    expected = dict.fromkeys(faults.BAD, State.FAILED) | dict.fromkeys(good, State.MEASURED)
    assert states(folder) == expected
    found = collect(folder)
    reasons = {str(cell.case): reason for cell, reason in found.failed}
    for case, reason in zip(faults.BAD, faults.REASONS, strict=True):
        assert reason in reasons[case]
        assert f"{case}: " in said
        assert said.count(f"{case}: try") == 2
    assert said.count("inv 8x8 float64 cpu: try 1 failed") == 1
    (file,) = found.files
    (kept,) = store.load(file)
    for cell in kept.cells:
        failed = {each.status is Status.FAILED for each in cell}
        assert failed == {str(cell.case) in faults.BAD}
    assert kept.machine.name == "here"
    assert kept.machine.threads == 1


def test_what_is_measured_or_failed_is_not_run_again_unless_it_is_damaged(sweep):
    folder = sweep("inv 7x7 float64 cpu", "inv 9x9 float64 cpu")
    run(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.path.glob("[ct]*/*/*")}
    assert len(before) == 3
    path = folder.result(survey(folder)["here"][1][0])
    path.write_bytes(path.read_bytes()[:100])
    found = collect(folder)
    assert (found.measured, found.remaining, len(found.damaged)) == (0, 1, 1)
    code, said = run(folder)
    assert code == 0
    assert said.count(" of 1: ") == 1
    assert collect(folder).measured == 1
    after = {path: path.stat().st_mtime_ns for path in folder.path.glob("[ct]*/*/*")}
    assert [each for each in before if after.get(each) != before[each]] == [path]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill", "number", "code"),
    [
        (os.killpg, signal.SIGINT, 130),  # Ctrl-C
        (os.kill, signal.SIGINT, 130),
        (os.kill, signal.SIGTERM, 143),
    ],
)
def test_a_signal_ends_it_without_a_trace_and_the_same_command_goes_on(sweep, kill, number, code):
    folder = sweep("inv 9x9 float64 cpu", "inv 6x6 float64 cpu", "det 9x9 float64 cpu")
    process = begin(folder)
    wait_for(lambda: states(folder)["inv 6x6 float64 cpu"] is State.RUNNING)
    kill(process.pid, number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert ("the same command resumes" in said) == (number == signal.SIGINT)
    assert not list(folder.path.glob("tries/*/*"))
    found = states(folder)
    assert found["inv 9x9 float64 cpu"] is State.MEASURED
    assert found["inv 6x6 float64 cpu"] is State.MISSING
    assert run(folder)[0] == 0
    assert states(folder)["det 9x9 float64 cpu"] is State.MEASURED
    assert states(folder)["inv 6x6 float64 cpu"] is State.FAILED


@pytest.mark.slow
def test_a_worker_that_vanishes_leaves_its_cell_to_the_next(sweep):
    folder = sweep("inv 6x6 float64 cpu")
    process = begin(folder)
    wait_for(lambda: states(folder)["inv 6x6 float64 cpu"] is State.RUNNING)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for(lambda: states(folder)["inv 6x6 float64 cpu"] is State.MISSING)
    ((_, known),) = survey(folder)["here"]
    assert len(known.past.losses) == 1
    run(folder)
    assert states(folder)["inv 6x6 float64 cpu"] is State.FAILED


@pytest.mark.slow
def test_two_at_once_share_the_cells(sweep):
    cases = [f"inv {n}x{n} float64 cpu" for n in range(20, 32)]
    folder = sweep(*cases)
    both = [begin(folder) for _ in range(2)]
    said = "".join(process.communicate(timeout=120)[0] for process in both)
    assert set(states(folder).values()) == {State.MEASURED}
    assert said.count(" of 12: ") == 12


def test_a_machine_that_is_not_of_the_class_is_refused(sweep):
    folder = sweep("inv 9x9 float64 cpu", text=SWEEP.replace('"."', '"No Such Processor"'))
    code, said = run(folder)
    assert "not of class here" in said
    assert code == 1
    assert states(folder) == {"inv 9x9 float64 cpu": State.MISSING}
    (refusal,) = folder.refusals("here")
    assert "not No Such Processor" in refusal.problem
