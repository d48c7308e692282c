"""A sweep on a real Slurm of three nodes, in which everything goes wrong that can."""

import json
import os

import faults
import pytest
from slurm_cluster import Cluster, missing_programs

from strategies.measuring import store
from strategies.sweeps import config, slurm
from strategies.sweeps.folder import Folder, State
from strategies.sweeps.plan import survey

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(missing_programs()),
        reason="needs Debian's slurmctld, slurmd, slurm-client and munge: "
        + ", ".join(missing_programs()),
    ),
]

CASES = [
    *(f"inv {n}x{n} float64 cpu" for n in range(2, 34)),
    *(f"det {n}x{n} float64 cpu" for n in range(9, 41)),
]

SWEEP = """
out = "{out}"
workload = "workload.json"
budget = 0.0
chunk_minutes = 0.5
timeout = 20

[classes.small]
cpu = "."
constraint = "small"
setup = {setup}

[classes.large]
cpu = "."
threads = {threads}
constraint = "large"
partition = "all"
setup = {setup}
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def write(tmp_path, monkeypatch, package):
    """Writes a sweep with a faulty plug-in, and returns its file."""
    faults.install(tmp_path / "site", package)
    faults.save_workload(tmp_path / "workload.json", CASES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def write(name, out, text=SWEEP):
        setup = json.dumps([f"export PYTHONPATH={tmp_path / 'site'}"])
        threads = min(2, len(os.sched_getaffinity(0)))
        path = tmp_path / name
        path.write_text(text.format(out=out, setup=setup, threads=threads))
        return path

    return write


def invoke(*arguments):
    process = faults.begin(*arguments)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0, said
    return said


def states(folder):
    """Of every class, its cells by state."""
    found = {machines: {state: [] for state in State} for machines in folder.sweep.classes}
    for machines, cells in survey(folder).items():
        for cell, known in cells:
            found[machines][known.state].append((cell, known))
    return found


def measured_on(folder, node):
    known = [known for cells in survey(folder).values() for _, known in cells if known.run]
    return sum(each.run.arguments["node"] == node for each in known)


def running(cluster, node):
    """The job that is running on a node, as 12_3."""
    return cluster.run(
        "squeue", "--noheader", "--array", "--states=R", f"--nodelist={node}", "--format=%F_%K"
    ).strip()


def test_nothing_is_lost_and_nothing_counted_twice_whatever_goes_wrong(cluster, write, tmp_path):
    sweep, here = write("sweep.toml", "swept"), write("here.toml", "here")
    folder = Folder(config.read(sweep))
    at_home = faults.begin("sweep", "local", here)

    said = invoke("sweep", "submit", sweep)
    assert said.count("64 cells in") == 2
    assert invoke("sweep", "submit", sweep).strip() == ""  # all is in a job

    cluster.wait_for(lambda: measured_on(folder, "n1") > 1 and running(cluster, "n1"), 90)
    cluster.lose("n1")

    cluster.wait_for(lambda: measured_on(folder, "n3") > 1, 90)
    again = ""
    while "large: " not in again:  # a job that was about to end has lost nothing
        cluster.wait_for(lambda: running(cluster, "n3"), 90)
        cancelled = running(cluster, "n3")
        cluster.run("scancel", cancelled)
        cluster.wait_for(lambda cancelled=cancelled: running(cluster, "n3") != cancelled, 60)
        again = invoke("sweep", "submit", sweep)

    collectors = [faults.begin("sweep", "collect", sweep) for _ in range(2)]
    for each in collectors:
        said, _ = each.communicate(timeout=100)
        assert each.returncode == 0, said
    during = store.load(folder.path / "results", "grid")
    assert sum(len(run.cells) for run in during) > 0

    cluster.wait_for(lambda: cluster.states()["n1"] != "alloc", 60)
    cluster.start("n1")
    cluster.wait_for(lambda: not any(slurm.live(folder).values()), 600)
    print(invoke("sweep", "status", sweep))
    while any(found[State.MISSING] for found in states(folder).values()):
        invoke("sweep", "submit", sweep)
        cluster.wait_for(lambda: not any(slurm.live(folder).values()), 120)

    for machines, found in states(folder).items():
        failed = {str(cell.case): known.past.reason for cell, known in found[State.FAILED]}
        assert sorted(failed) == sorted(faults.BAD), (machines, failed)
        for case, reason in zip(faults.BAD, faults.REASONS, strict=True):
            assert reason in failed[case]
        assert len(found[State.MEASURED]) == len(CASES) - len(faults.BAD)

    ended = invoke("sweep", "collect", sweep)
    assert f"{2 * len(CASES) - 6} cells measured, 6 failed, 0 remain" in ended
    for run in store.load(folder.path / "results", "grid"):
        assert sorted(str(cell.case) for cell in run.cells) == sorted(CASES)
    logs = "".join(path.read_text() for path in folder.path.glob("slurm/*.out"))
    for case in set(CASES) - set(faults.BAD):
        measured = [
            line for line in logs.splitlines() if f": {case}: " in line and "try" not in line
        ]
        assert len(measured) == 2, (case, measured)

    said, _ = at_home.communicate(timeout=400)
    assert at_home.returncode == 0, said
    invoke("sweep", "collect", here)
    for machines in folder.sweep.classes:
        policies = []
        for out in ("swept", "here"):
            (results,) = (tmp_path / out / "results").glob(f"{machines}-*.json")
            policies.append(tmp_path / f"{out}-{machines}.json")
            invoke("policy", "build", policies[-1], "--results", results)
        same = invoke("policy", "diff", *policies)
        assert f"{len(CASES) - len(faults.BAD)} cells in both" in same
        assert "0 in one only" in same
