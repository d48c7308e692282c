"""Cells, how long they take, and chunks of them."""

import math

import faults
import pytest

from strategies.errors import UnusableFileError
from strategies.measuring import Case, Cell, Machine, Measurement, Objective, Run, store
from strategies.sweeps import collect as collecting
from strategies.sweeps import config
from strategies.sweeps.cells import SweepCell, cells_of
from strategies.sweeps.folder import Folder
from strategies.sweeps.plan import Estimates, by_work, pack, plans

TEXT = """
out = "swept"
grid = "full"

[classes.epyc]
cpu = "EPYC"
[classes.hopper]
cpu = "EPYC"
gpu = "H200"
"""


def folder(tmp_path, text=TEXT):
    (tmp_path / "sweep.toml").write_text(text)
    return Folder(config.read(tmp_path / "sweep.toml"))


def test_a_class_with_a_gpu_measures_on_it_and_no_gpu_is_needed_to_plan(tmp_path):
    cells = {name: cells_of(folder(tmp_path).sweep, name) for name in ("epyc", "hopper")}
    assert {cell.case.device for cell in cells["epyc"]} == {"cpu"}
    assert {cell.case.device for cell in cells["hopper"]} == {"cuda:0"}
    assert max(cell.case.batch for cell in cells["hopper"]) == 1_000_000
    for found in cells.values():
        assert len({cell.key for cell in found}) == len(found) > 1000
        assert {cell.objectives for cell in found} == {(), (Objective.FORWARD_BACKWARD,)}


def test_of_a_workload_a_class_measures_what_is_of_its_device(tmp_path):
    faults.save_workload(tmp_path / "w.json", ["inv 4x4 float64 cpu", "inv 5x5 float64 cuda:0"])
    sweep = folder(tmp_path, TEXT.replace('grid = "full"', 'workload = "w.json"')).sweep
    assert [str(cell.case) for cell in cells_of(sweep, "epyc")] == ["inv 4x4 float64 cpu"]
    assert [str(cell.case) for cell in cells_of(sweep, "hopper")] == ["inv 5x5 float64 cuda:0"]
    faults.save_workload(tmp_path / "w.json", ["inv 4x4 float64 cpu"])
    with pytest.raises(ValueError, match=r"class hopper: .* no calls for its device"):
        cells_of(sweep, "hopper")


@pytest.mark.parametrize("seconds", [[], [5.0], [1.0] * 100, [0.1 * n for n in range(200)]])
def test_every_piece_is_in_one_chunk_and_chunks_are_about_equal(seconds):
    chunks = pack(seconds, 60.0)
    assert sorted(index for chunk in chunks for index in chunk) == list(range(len(seconds)))
    totals = [math.fsum(seconds[index] for index in chunk) for chunk in chunks]
    assert all(chunk == sorted(chunk) for chunk in chunks)
    if totals:
        assert max(totals) <= 60.0 + max(seconds)
        assert max(totals) - min(totals) <= max(seconds)


def test_chunks_of_the_full_grid_take_what_was_asked_for(tmp_path):
    here = folder(tmp_path)
    cells = cells_of(here.sweep, "epyc")
    planned, _ = plans(here)
    assert sum(map(len, planned.chunks)) == len(cells)
    longest = max(Estimates([], 1.0).seconds(cell) for cell in cells)
    assert all(10 * 60 <= seconds <= max(30 * 60, longest) for seconds in planned.seconds)
    for chunk, seconds, limit in zip(planned.chunks, planned.seconds, planned.limits, strict=True):
        assert 60 * limit >= seconds + max(cell.timeout for cell in chunk)


def test_a_cell_that_is_in_a_job_is_not_planned_again(tmp_path):
    here = folder(tmp_path)
    first, *others = cells_of(here.sweep, "epyc")
    planned, _ = plans(here, {"epyc": {cell.key for cell in others}})
    assert [cell for chunk in planned.chunks for cell in chunk] == [first]


def test_what_was_measured_is_believed_and_corrects_the_rest():
    small, large, other = (
        SweepCell("a", Case("inv", (n, n)), (Objective.BACKWARD,)) for n in (4, 64, 128)
    )
    found = Estimates([(small, 3 * by_work(small, 1.0)), (large, 100.0)], 1.0)
    assert found.is_measured(large)
    assert found.seconds(SweepCell("b", large.case, large.objectives)) == 100.0
    assert not found.is_measured(other)
    assert found.seconds(other) > 3 * by_work(other, 1.0)


def a_run(cell, **machine):
    found = Cell(cell.case, (Measurement("native"),))
    return Run("grid", Machine("epyc", **machine), {"seconds": 2.0}, (found,))


def test_a_folder_is_of_one_sweep(tmp_path):
    folder(tmp_path).begin()
    folder(tmp_path, TEXT + "threads = 1").begin()
    folder(tmp_path, TEXT + '[classes.more]\ncpu = "Xeon"').begin()
    folder(tmp_path).begin()
    with pytest.raises(UnusableFileError, match="class hopper was begun with threads 1, not 2"):
        folder(tmp_path, TEXT + "threads = 2").begin()
    with pytest.raises(UnusableFileError, match=r"begun with budget 1\.0, not 2\.0"):
        folder(tmp_path, "budget = 2.0\n" + TEXT).begin()


def test_a_refusal_counts_while_the_class_says_the_same(tmp_path):
    here = folder(tmp_path)
    here.refuse("epyc", "n1", "its cpu is Xeon")
    assert [each.node for each in here.refusals("epyc")] == ["n1"]
    assert not folder(tmp_path, TEXT.replace('cpu = "EPYC"', 'cpu = "Xeon"')).refusals("epyc")


def test_results_of_differing_software_are_kept_apart(tmp_path):
    here = folder(tmp_path)
    for index, cell in enumerate(cells_of(here.sweep, "epyc")[:5]):
        store.write(here.result(cell), a_run(cell, torch="2.12" if index < 2 else "2.13"))
    found = collecting.collect(here)
    assert found.measured == 5
    runs = store.load(here.path / "results", "grid")
    assert sorted((run.machine.torch, len(run.cells)) for run in runs) == [("2.12", 2), ("2.13", 3)]


def test_a_class_is_as_busy_and_as_noisy_as_its_median_cell(tmp_path):
    here = folder(tmp_path)
    for cell, load in zip(cells_of(here.sweep, "epyc")[:4], (0.1, None, 5.0, 0.2), strict=True):
        store.write(here.result(cell), a_run(cell, load=load, noise=load and 1 + load))
    collecting.collect(here)
    (run,) = store.load(here.path / "results", "grid")
    assert (run.machine.load, run.machine.noise) == (0.2, 1.2)


def test_a_collector_looks_again_for_what_came_while_it_wrote(tmp_path, monkeypatch):
    here = folder(tmp_path)
    first, second = cells_of(here.sweep, "epyc")[:2]
    store.write(here.result(first), a_run(first))
    write, late = store.write, [second]

    def slow(path, run):
        write(path, run)
        if late:
            cell = late.pop()
            monkeypatch.setattr(collecting.store, "write", write)
            store.write(here.result(cell), a_run(cell))
            monkeypatch.setattr(collecting.store, "write", slow)

    monkeypatch.setattr(collecting.store, "write", slow)
    assert collecting.collect(here).measured == 2
    (run,) = store.load(here.path / "results", "grid")
    assert [cell.case for cell in run.cells] == [first.case, second.case]
