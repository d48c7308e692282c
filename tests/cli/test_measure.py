"""`backward-strategies measure`, on a grid of three small cells."""

import json

import pytest

from strategies.cli import measure as module
from strategies.measuring import Case, Cell, Measurement, Objective, store

TIMED = [Case("inv", (4, 4)), Case("det", (4, 4))]
JUDGED = [Case("inv", (4, 4), log10_cond=5)]


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """What was measured, with which objectives; nothing is."""
    asked = []

    def measure(case, names, *, objectives, budget):
        asked.append((case, tuple(objectives)))
        return Cell(case, tuple(map(Measurement, names)))

    monkeypatch.delenv("BACKWARD_STRATEGIES_GRID", raising=False)
    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(module.grid_cases, "timed", lambda grid: TIMED)
    monkeypatch.setattr(module.grid_cases, "judged", lambda grid: JUDGED)
    return asked


def test_all_cells_are_measured_and_kept(invoke, kept, asked):
    invoke("measure", kept)
    both = (Objective.BACKWARD, Objective.FORWARD_BACKWARD)
    assert asked == [(TIMED[0], both), (TIMED[1], both), (JUDGED[0], ())]
    (run,) = store.load(kept, "grid")
    assert [cell.case for cell in run.cells] == [*TIMED, *JUDGED]
    assert run.arguments["grid"] == "quick"


def test_a_machine_may_be_named_and_says_how_busy_it_is(invoke, kept):
    invoke("measure", kept, "--machine", "lathe")
    (run,) = store.load(kept)
    assert run.machine.name == "lathe"
    assert run.machine.noise >= 1
    assert run.machine.load >= 0


def test_one_objective_or_one_operation_may_be_asked_for(invoke, kept, asked):
    invoke("measure", kept, "--objective", "backward", "--operation", "det")
    assert asked == [(TIMED[1], (Objective.BACKWARD,))]


def test_an_interrupted_run_is_resumed(invoke, kept, asked, monkeypatch):
    measure = module.measure

    def interrupted(case, *arguments, **options):
        if case == TIMED[1] and len(asked) == 1:
            raise KeyboardInterrupt
        return measure(case, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, "measure", interrupted)
        result = invoke("measure", kept, code=130)
    assert "1 of 3 cells are in" in " ".join(result.stderr.split())
    invoke("measure", kept)
    assert [case for case, _ in asked] == [*TIMED, *JUDGED]


def test_a_file_in_another_order_is_completed_by_what_it_lacks(invoke, kept, asked):
    invoke("measure", kept)
    content = json.loads(kept.read_text())
    _, second, third = content["cells"]
    kept.write_text(json.dumps({**content, "cells": [third, second]}))
    asked.clear()
    invoke("measure", kept)
    assert [case for case, _ in asked] == [TIMED[0]]
    (run,) = store.load(kept, "grid")
    assert [cell.case for cell in run.cells] == [*JUDGED, TIMED[1], TIMED[0]]


def test_what_cannot_be_run_is_one_line(invoke, fails, kept):
    fails(["measure", kept, "--operation", "qr"], "--operation qr: there is cholesky")
    for endless in ("nan", "inf"):
        invoke("measure", kept, "--budget", endless, code=2)
    assert not kept.exists()
    invoke("measure", kept)
    fails(["measure", kept, "--budget", "3"], "budget 1.0, not 3.0")
