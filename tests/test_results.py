"""What is kept in `results/`: CI refuses a contribution that lacks what its readers need."""

import gzip
import re
from pathlib import Path

import pytest

from strategies.measuring import store

RESULTS = Path(__file__).parents[1] / "results"
FILES = sorted(path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".md")
TIMED = "grid", "draw", "peers"
"""Kinds of runs that depend on the machine; stability does not."""

LARGEST = 1.2e6
"""Bytes of a folder."""


def named(path):
    return path.relative_to(RESULTS).as_posix()


def faults(run, folder):
    """What is wrong with a run in a folder of results, in words."""
    machine = run.machine
    # As epyc in epyc-2cores: the folder may say more than the name.
    is_its = folder == machine.name or folder.startswith(f"{machine.name}-")
    if run.kind in TIMED and not is_its:
        yield f"is of machine {machine.name!r}, whose folder is {machine.name} or {machine.name}-..."
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", machine.name):
        yield f"the name {machine.name!r} is no word of a-z, 0-9, dot, dash and underscore"
    for name in ("cpu", "threads", "torch", "commit", "started_at"):
        if not getattr(machine, name):
            yield f"does not say its {name}"
    if not run.cells:
        yield "holds no cells"
    # Runs of before these fields were recorded have none of them.
    if run.kind in TIMED and machine.instruction_set:
        for name in ("load", "noise"):
            if getattr(machine, name) is None:
                yield f"does not say its {name}"
    if run.kind == "grid" and not run.arguments.get("grid"):
        yield "does not say which grid was measured"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_every_file_can_be_read_and_says_where_it_was_measured(path):
    assert path.name.endswith(".json.gz"), "pack it: gzip -9 -n FILE"
    (run,) = store.load(path)
    assert run.kind != "calibration", "that is a draft of a user's own"
    assert list(faults(run, path.relative_to(RESULTS).parts[0])) == []


@pytest.mark.parametrize("folder", [path for path in RESULTS.iterdir() if path.is_dir()], ids=named)
def test_they_stay_small(folder):
    assert sum(path.stat().st_size for path in FILES if folder in path.parents) < LARGEST


def test_a_name_stands_for_one_machine():
    """Cells of one name are mixed, the newest first: those of two machines would be as well."""
    known = {}
    for run in store.load(RESULTS):
        if run.kind not in TIMED:
            continue
        what = run.machine.cpu, run.machine.threads, run.machine.torch
        assert known.setdefault(run.machine.name, what) == what, run.path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"name":"epyc"', '"name":"lathe"', "is of machine 'lathe'"),
        ('"name":"epyc"', '"name":"epyc-2"', "is of machine 'epyc-2'"),
        ('"cpu":"AMD EPYC"', '"cpu":""', "does not say its cpu"),
        ('"threads":2', '"threads":0', "does not say its threads"),
        ('"load":', '"unknown":', "does not say its load"),
        ('"grid":"cpu"', '"grid":""', "does not say which grid"),
    ],
)
def test_a_contribution_that_lacks_something_is_refused(tmp_path, old, new, said):
    packed = RESULTS / "epyc-2cores" / "grid" / "all.json.gz"
    kept = gzip.decompress(packed.read_bytes()).decode()
    assert old in kept
    path = tmp_path / "run.json"
    path.write_text(kept.replace(old, new, 1))
    (run,) = store.load(path)
    assert any(fault.startswith(said) for fault in faults(run, "epyc-2cores"))
