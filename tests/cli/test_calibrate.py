"""`backward-strategies calibrate`, in which nothing is measured; and once for some seconds, in earnest."""

import json
import os

import filelock
import pytest
import torch
from by_hand import took

from strategies import policy
from strategies.cli import calibrate as module
from strategies.integration.workload import Call, Workload
from strategies.measuring import Case, Cell
from strategies.policy import calibration
from strategies.policy.calibration import Calibration
from strategies.policy.schema import Evidence
from strategies.selection import calibrating

CASES = [Case.parse(text) for text in ("inv 8x8", "det 8x8", "inv 3x8x8", "inv 8x8 cuda")]


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch, configuration):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(module.grid_cases, "timed", lambda grid: CASES)
    monkeypatch.setattr(module, "timing_noise", lambda: 1.0)
    monkeypatch.setattr(module, "load", lambda: 0.0)
    monkeypatch.setattr(module, "build_fast_path", lambda: None)
    monkeypatch.setattr(calibrating, "checked", lambda used, *_, **__: {})


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """The cases that were measured; what the shipped policy would use is the slowest, before native."""
    asked = []

    def race(case, names, *, budget):
        asked.append((case, torch.get_num_threads()))
        times = {"fused": 3.0, "native": 2.0}
        return Cell(case, tuple(took(name, times.get(name, 1.0)) for name in names))

    monkeypatch.setattr(calibrating, "race", race)
    return asked


def first(operation, size):
    sizes = size, size, 1, 0, "float64", "cpu"
    return policy.candidates(operation, *sizes, any_rank=False)[0].name


def active():
    policy.refresh()
    return policy.active()[1]


def test_auto_follows_what_was_measured(invoke, configuration, asked):
    result = invoke("calibrate")
    assert {case for case, _ in asked} == set(CASES[:3])
    assert "What has changed (cpu, 1 thread)" in result.stdout
    assert "has 3 cells (cpu, 1 thread), which" in result.stdout
    assert active().startswith(f"the calibration {configuration / 'policy.json'} (1 thread)")
    assert first("inv", 8) != "fused"
    assert [path.name for path in configuration.iterdir() if path.suffix == ".json"] == [
        "policy.json"
    ]


def test_every_number_of_threads_is_measured_with_that_and_the_old_one_is_restored(invoke, asked):
    before = torch.get_num_threads()
    invoke("calibrate", "--threads", "2,1,all")
    assert {threads for _, threads in asked} == {1, 2}
    assert torch.get_num_threads() == before
    assert [p.threads for p in Calibration.read(calibration.location()).parts] == [2, 1]


def test_an_interrupted_run_is_resumed(invoke, configuration, asked, monkeypatch):
    race = calibrating.race

    def interrupted(case, *arguments, **options):
        if len(asked) == 2:
            raise KeyboardInterrupt
        return race(case, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(calibrating, "race", interrupted)
        result = invoke("calibrate", code=130)
    assert "2 cells are kept; the same command goes on from there" in result.stderr
    assert not (configuration / "policy.json").exists()
    invoke("calibrate")
    assert sorted(str(case) for case, _ in asked) == sorted(map(str, CASES[:3]))


def test_what_another_version_has_left_begins_anew(invoke, configuration, asked):
    configuration.mkdir()
    (configuration / "calibrating-grid-cpu-1.json").write_text("{")
    invoke("calibrate")
    assert len(asked) == 3


def test_a_busy_machine_is_refused_and_one_that_is_not_quiet_is_told(
    invoke, fails, monkeypatch, asked
):
    monkeypatch.setattr(module, "timing_noise", lambda: 2.0)
    fails(["calibrate"], "the machine is busy", "--force")
    assert asked == []
    forced = invoke("calibrate", "--force")
    assert "the machine is not quiet" in " ".join(forced.stderr.split())
    monkeypatch.setattr(module, "timing_noise", lambda: 1.0)
    monkeypatch.setattr(module, "load", lambda: 0.9)
    assert "not quiet" in invoke("calibrate").stderr


def test_what_is_unstable_here_is_told_and_not_used(invoke, monkeypatch):
    invoke("calibrate")
    fastest = first("inv", 8)
    bad = {"inv": {fastest: Evidence(3, 0, 1e8, "inv 2x2 cond=1e5")}}
    monkeypatch.setattr(calibrating, "checked", lambda used, *_, **__: bad)
    result = invoke("calibrate")
    assert f"{fastest} in inv: 1.0e+08 in inv 2x2" in result.stdout
    assert first("inv", 8) != fastest


def test_one_process_calibrates_at_a_time(invoke, fails, configuration):
    configuration.mkdir()
    with filelock.FileLock(configuration / "calibrating.lock"):
        fails(["calibrate"], "another process calibrates")


def test_of_a_distributed_job_rank_0_calibrates(invoke, configuration, monkeypatch, asked):
    monkeypatch.setenv("RANK", "3")
    result = invoke("calibrate")
    assert "rank 0 calibrates" in result.stdout
    assert not configuration.exists()
    monkeypatch.setenv("RANK", "0")
    invoke("calibrate")
    assert asked


def test_a_program_is_measured_case_by_case(invoke, tmp_path, asked):
    path = tmp_path / "workload.json"
    same = {"shapes": ((5, 5),), "dtype": "float64", "device": "cpu", "forward": 1.0}
    called = ("inv", "inv 5x5", 4), ("det", "det 5x5", 2), ("tensorinv", "", 1)
    calls = [
        Call(function=f"torch.linalg.{name}", at=f"train.py:{n}", case=case, count=count, **same)
        for n, (name, case, count) in enumerate(called, start=7)
    ]
    Workload(program=("train.py",), seconds=9.0, machine={}, calls=tuple(calls)).save(path)
    result = invoke("calibrate", "--workload", path)
    assert {case for case, _ in asked} == set(Workload.read(path).cases())
    assert "train.py:7" in result.stdout
    assert "train.py:9" not in result.stdout
    # 4 and 2 calls, of 2 s each by native, of 3 s by what was shipped, and of 1 s now.
    assert "In all: torch 12 s, before 18 s, now 6 s" in result.stdout
    assert first("inv", 5) != "fused"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "0"], f"--threads 0: give numbers from 1 to {os.cpu_count()}, or all"),
        (["--threads", "4096"], "--threads 4096: give numbers"),
        (["--threads", "some"], "--threads some"),
        (["--devices", "tpu"], "--devices tpu: there is cpu"),
        (["--workload", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_cannot_be_measured_is_one_line(invoke, fails, arguments, said, configuration):
    fails(["calibrate", *arguments], said)
    assert not (configuration / "policy.json").exists()


def test_a_damaged_policy_is_named_and_kept(invoke, fails, configuration):
    configuration.mkdir()
    path = configuration / "policy.json"
    path.write_text("{")
    fails(["calibrate"], "policy.json", "not valid JSON", "policy clear` deletes it")
    assert path.read_text() == "{"


@pytest.mark.slow
def test_in_earnest_for_some_seconds(configuration, python):
    said = python("-m", "strategies", "calibrate", "--minutes", "0.05", "--force")
    assert "Stability, checked here" in said.stdout, said.stderr
    (part,) = Calibration.read(calibration.location()).parts
    assert part.cells
    assert '"auto" follows the calibration' in python("-m", "strategies", "policy", "show").stdout
    assert json.loads(calibration.location().read_text())["version"] == Calibration().version
