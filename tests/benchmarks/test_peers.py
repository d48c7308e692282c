"""The comparison with other libraries, in this process where it can be."""

import numpy as np
import pytest
import torch
from by_hand import timing, took

from benchmarks.peers import __main__ as command
from benchmarks.peers import comparison
from benchmarks.peers.comparison import candidates, compare, small_cases
from benchmarks.peers.process import Peer
from strategies import operations
from strategies.measuring import store
from strategies.measuring.case import Case
from strategies.measuring.measure import TIMED
from strategies.measuring.measurement import Cell, Objective, Status
from strategies.measuring.workload import backward_of

CASES = (
    *("lu_factor 9x9", "lu_factor 9x4", "lu_factor 5x4x4", "pinv 9x4 float32"),
    *("lstsq 9x4", "lstsq 5x9x4", "solve 9x9", "inv 9x9", "det 9x9", "slogdet 9x9"),
    *("cholesky 9x9", "cholesky_solve 9x9", "cholesky_inverse 5x4x4"),
)
REFUSED = {"jax": {"lstsq 5x9x4"}, "lineax": set(CASES) - {"lstsq 9x4", "solve 9x9"}}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_library_does_the_same_work_or_refuses(name):
    pytest.importorskip(name)
    with Peer(name, threads=1) as peer:
        for text in CASES:
            case = Case.parse(text)
            if text in REFUSED[name]:
                with pytest.raises(NotImplementedError):
                    peer.prepare(case)
                continue
            along = operations.get(case.operation).domain.part
            computed, expected = peer.prepare(case), backward_of(case, "native")()
            for i, (gradient, reference) in enumerate(zip(computed, expected, strict=True)):
                assert gradient.dtype == reference.numpy().dtype
                part = (lambda x: x) if i else along
                tolerance = 2e-3 if case.dtype.itemsize == 4 else 1e-8
                torch.testing.assert_close(
                    part(torch.tensor(gradient)), part(reference), rtol=tolerance, atol=1e-12
                )
            assert all(peer.sampler(objective)() > 0 for objective in TIMED)
        with pytest.raises(TimeoutError, match="not ready"):
            peer.prepare(Case("solve", (9, 9)), limit=0)
        assert len(peer.prepare(Case("solve", (9, 9)))) == 2  # of a process that was started anew


class Library:
    """A peer that needs no process."""

    name = "jax"

    def __init__(self, gradients):
        self.gradients = gradients

    def prepare(self, case):
        if self.gradients is None:
            raise NotImplementedError("cannot")
        return self.gradients

    def sampler(self, objective):
        return lambda: 1.0


CASE = Case("inv", (8, 8))
SECONDS = {
    "native": (3, 3),
    "explicit_inverse": (3, 1),
    "triangular_solve": (1, 2),
    "qr_pinv": (9, 9),
}
"""Of forward and backward, and of the backward alone."""
MEASURED = [took(name, both, backward=timing(alone)) for name, (both, alone) in SECONDS.items()]


@pytest.fixture
def measured(monkeypatch):
    """Instead of a clock, known times; what else was asked for takes one second."""

    def measure(case, names, *, budget, others):
        monkeypatch.undo()
        of_others = (took(name, 1.0, backward=timing(1.0)) for name in others)
        return Cell(case, (*MEASURED, *of_others))

    monkeypatch.setattr(comparison, "candidates", lambda case: list(SECONDS)[1:])
    monkeypatch.setattr(comparison, "measure", measure)


def test_native_and_our_best_at_each_objective_stand_beside_a_library(measured):
    gradients = [gradient.numpy() for gradient in backward_of(CASE, "native")()]
    cell = compare(CASE, [Library(gradients)], budget=0.0)
    assert [each.strategy for each in cell] == [*list(SECONDS)[:3], "jax"]
    assert cell.get("jax").backward.seconds == 1.0
    assert cell.get("jax").error < 1e-13
    assert comparison.fastest(cell, Objective.BACKWARD) == "explicit_inverse"
    assert comparison.fastest(cell, Objective.FORWARD_BACKWARD) == "triangular_solve"


def test_a_library_that_refuses_says_why(measured):
    cell = compare(CASE, [Library(None)], budget=0.0)
    assert (cell.get("jax").status, cell.get("jax").note) == (Status.NOT_APPLICABLE, "cannot")


def test_a_library_that_does_other_work_is_not_compared():
    with pytest.raises(RuntimeError, match="jax's gradients of inv 8x8 float64 cpu differ"):
        compare(CASE, [Library([np.zeros((8, 8))])], budget=0.0)


def test_neither_native_nor_what_loses_digits_twice_is_a_candidate():
    for dtype in (torch.float32, torch.float64):
        names = candidates(Case("pinv", (32, 8), dtype=dtype))
        assert "triangular_solve" in names
        assert not {"native", "explicit_inverse"} & set(names)


def test_the_command_resumes_and_shows_ratios(tmp_path, monkeypatch, capfd):
    done = []

    def compared(case, peers, budget):
        done.append(case if len(done) != 2 else "stopped")
        if done[-1] == "stopped":
            raise KeyboardInterrupt
        return Cell(case, tuple(MEASURED[:2]))

    monkeypatch.setattr(command, "compare", compared)
    monkeypatch.setattr(command, "PEERS", ())
    out = tmp_path / "peers.json"
    with pytest.raises(SystemExit) as stop:
        command.main(out=out, grid="tiny", budget=1.0)
    assert stop.value.code == 130
    assert "interrupted: 2 of 46 cells are in" in " ".join(capfd.readouterr().err.split())
    command.main(out=out, grid="tiny", budget=1.0)
    (run,) = store.load(out, "peers")
    assert [cell.case for cell in run.cells] == [case for case in done if case != "stopped"]
    assert len(run.cells) == 46
    shown = capfd.readouterr().out
    assert "explicit_inverse 3× [3×, 3×]" in shown
    assert "inv 8x8 float64" in shown


def test_cases_may_be_given_in_place_of_a_grid(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "compare", lambda case, *_: Cell(case, ()))
    monkeypatch.setattr(command, "PEERS", ())
    out = tmp_path / "peers.json"
    command.main(out=out, cases=["inv 5x5", "inv 4x4"], grid="quick", budget=1.0)
    (run,) = store.load(out, "peers")
    assert [cell.case for cell in run.cells] == [*small_cases(), Case.parse("inv 5x5")]
    assert run.arguments["cases"] == ["inv 5x5", "inv 4x4"]
    assert "grid" not in run.arguments
