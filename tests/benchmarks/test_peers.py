"""The comparison with other libraries, in this process where it can be."""

import importlib
import itertools

import numpy as np
import pytest
import torch
import typer

from benchmarks.peers import comparison
from benchmarks.peers.comparison import GRIDS, Timed, cases, compare
from benchmarks.peers.worker import Peer
from strategies.measuring import Case, backward_of
from strategies.measuring.rounds import Rounds
from strategies.selection import kept_files, rows

CASES = [
    Case("lu_factor", (9, 9)),
    Case("lu_factor", (9, 4)),
    Case("lu_factor", (4, 4), batch=5),
    Case("pinv", (9, 4), dtype=torch.float32),
    Case("lstsq", (9, 4)),
    Case("solve", (9, 9)),
    Case("inv", (9, 9)),
]


@pytest.fixture(params=["jax", "lineax"], scope="module")
def peer(request):
    pytest.importorskip(request.param)
    with Peer(request.param, threads=1) as process:
        yield process


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_peer_does_the_same_work_or_refuses(peer, case):
    try:
        gradients = peer.prepare(case)
    except NotImplementedError:
        assert peer.name == "lineax"
        assert case.operation not in ("lstsq", "solve")
        return
    for computed, expected in zip(gradients, backward_of(case, "native")(), strict=True):
        assert computed.dtype == expected.numpy().dtype
        np.testing.assert_allclose(
            computed, expected, rtol=2e-3 if case.dtype.itemsize == 4 else 1e-8
        )
    assert all(peer.sampler(objective)() > 0 for objective in ("backward", "forward_backward"))


@pytest.mark.parametrize("grid", GRIDS)
def test_cases_are_made(grid):
    assert all(case.device == "cpu" for case in cases(grid))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_loses_digits_twice_is_not_compared_as_our_best(dtype):
    case = Case("pinv", (32, 8), dtype=dtype)
    assert not comparison._is_stable(case, "explicit_inverse")
    assert comparison._is_stable(case, "triangular_solve")


@pytest.fixture
def report():
    return pytest.importorskip("benchmarks.peers.report")


@pytest.fixture
def results(report):
    """A case by native, by our best at either objective and by a library that refused it."""
    ratios = dict.fromkeys(report.OBJECTIVES, (2.0, 3.0, 4.0))
    native = Timed("native", dict.fromkeys(report.OBJECTIVES, 3.0), ratios)
    ours = Timed("svd_truncated_pinv", {"backward": 1.0}, {})
    other = Timed("qr_pinv", {"forward_backward": 2.0}, {})
    return {Case("pinv", (9, 4)): [native, ours, other, Timed("jax", {}, {}, "cannot")]}


def begun(path):
    where = {"torch": "2.13.0", "commit": "abc", "started_at": 1, "libraries": {"jax": "0.10"}}
    return kept_files.PEERS.begun(path, {"grid": "quick", "budget": 1.0}, where)


def test_what_is_written_is_read_as_rows_that_no_verdict_counts(tmp_path, report, results):
    report.write(tmp_path / "peers.json", begun(tmp_path / "peers.json"), results)
    read = rows.load(tmp_path).set_index("strategy")
    assert read["is_peer"].all()
    assert set(read["torch"]) == {"2.13.0, jax 0.10"}
    speedups = read.filter(regex="speedup_over_native").loc[["native", "svd_truncated_pinv"]]
    assert speedups.to_numpy().tolist() == [[1.0, 1.0, 1.0], [3.0, 2.0, 4.0]]
    assert read.loc["qr_pinv"].filter(regex="speedup|^backward").isna().all()


def test_each_objective_names_its_own_best(tmp_path, report, results):
    report.write(tmp_path / "peers.json", begun(tmp_path / "peers.json"), results)
    backward, both = (tmp_path / "peers.md").read_text().split("**forward + backward**")
    assert "| pinv 9x4 | svd_truncated_pinv | 1 s | 3 s = 3× [2×, 4×] | n/a |" in backward
    assert "| pinv 9x4 | qr_pinv | 2 s | 3 s = 3× [2×, 4×] | n/a |" in both


def stopped() -> float:
    """A clock by which all strategies take the same time, on a disturbed machine too."""
    return 0.0


def test_our_best_is_chosen_at_each_objective(monkeypatch):
    fastest = iter(["explicit_inverse", "triangular_solve"])

    def in_rounds(calls, **_):
        best = next(fastest)
        return Rounds({}, {name: [1.0 if name == best else 2.0] for name in calls})

    monkeypatch.setattr(comparison, "in_rounds", in_rounds)
    native, *ours = compare(Case("inv", (8, 8)), [], budget=0.0, clock=stopped)
    assert [timed.name for timed in ours] == ["explicit_inverse", "triangular_solve"]
    assert [list(timed.seconds) for timed in ours] == [["backward"], ["forward_backward"]]
    assert set(native.over_ours) == set(comparison.OBJECTIVES)


def test_neither_native_nor_what_loses_digits_is_a_candidate(monkeypatch):
    candidates = []

    def in_rounds(calls, **_):
        candidates.append(set(calls))
        return Rounds({}, {name: [1.0] for name in calls})

    monkeypatch.setattr(comparison, "in_rounds", in_rounds)
    compare(Case("pinv", (32, 8)), [], budget=0.0, clock=stopped)
    for names in candidates:
        assert "triangular_solve" in names
        assert not names & {"native", "explicit_inverse"}


def test_a_run_goes_on_with_what_is_there(tmp_path, report, results):
    path = tmp_path / "peers.json"
    assert report.results_of(begun(path)) == {}
    report.write(path, begun(path), results)
    assert report.results_of(begun(path)) == results


def test_what_does_not_end_in_time_is_left_out_with_a_note():
    clock = itertools.chain([0.0], itertools.repeat(1e9))
    case = Case("inv", (8, 8))
    (native,) = compare(case, [], budget=0.0, clock=lambda: next(clock))
    assert native.note == "out of time"
    assert not native.seconds


def test_a_library_that_does_not_answer_in_time_is_started_anew(peer):
    case = Case("solve", (9, 9))
    with pytest.raises(TimeoutError):
        peer.prepare(case, limit=0)
    assert len(peer.prepare(case)) == 2


def test_the_command_resumes_and_says_how_long_it_may_take(tmp_path, monkeypatch, capfd):
    pytest.importorskip("lineax")
    command = importlib.import_module("benchmarks.peers.__main__")
    done = []

    def measured(remaining, budget):
        for case in remaining:
            if len(done) == 2:
                done.append("stopped")
                raise KeyboardInterrupt
            done.append(case)
            yield case, [Timed("native", {}, {}, "-")]

    monkeypatch.setattr(command, "_measured", measured)
    out = tmp_path / "peers.json"
    with pytest.raises(typer.Exit) as stop:
        command.main(out=out, grid="quick", budget=1.0)
    assert stop.value.exit_code == 130
    count = len(cases("quick"))
    said = capfd.readouterr().err
    assert f"{count} of {count} cases to measure; takes 19 min at most" in said
    assert f"interrupted: 2 of {count} cases are in" in said
    command.main(out=out, grid="quick", budget=1.0)
    assert [case for case in done if case != "stopped"] == cases("quick")
