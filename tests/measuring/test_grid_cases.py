"""Every grid is well formed, and what it needs to be."""

import math

import pytest
import torch

from strategies import operations
from strategies.measuring import Case, grid_cases
from strategies.operations.grids import GRIDS, Block

FULL = [*grid_cases.timed("full"), *grid_cases.judged("full")]


def test_every_grid_has_every_operation():
    for grid in GRIDS:
        for cases in (grid_cases.timed(grid), grid_cases.judged(grid)):
            assert {case.operation for case in cases} == set(operations.measured())
            assert len(set(cases)) == len(cases)


def test_an_unknown_grid_is_refused():
    with pytest.raises(ValueError, match="no grid is named 'huge'; there is tiny, quick"):
        grid_cases.timed("huge")


def test_the_full_grid_spans_what_is_promised():
    assert {4, 2048} <= {size for case in FULL for size in case.shape}
    assert max(case.batch for case in FULL) == 100_000
    assert len({case.dtype for case in FULL}) == 4
    assert {case.shape[0] < case.shape[1] for case in FULL} == {True, False}
    assert any(case.rank for case in FULL)
    assert sum(case.matrix is not None for case in FULL) > 100


def test_the_cpu_grid_has_cells_near_every_random_case():
    from strategies.policy.schema import position
    from strategies.selection.draws import draw_cases

    points = {}
    for case in grid_cases.timed("cpu"):
        if case.rank is None:
            point = position(*case.shape, case.rhs, case.batch)
            points.setdefault(case.operation, []).append(point)
    distances = [
        min(math.dist(position(*c.shape, c.rhs, c.batch), p) for p in points[c.operation])
        for c in draw_cases(300, "cpu", 0)
    ]
    # In log₂: a factor of four in size and of twelve in batch lie between neighbouring cells.
    assert max(distances) < 5
    assert sorted(distances)[150] < 2


def test_what_is_too_much_work_for_a_grid_is_left_out():
    blocks = operations.get("lu_factor").cells["cpu"]
    assert grid_cases.fits(Case("lu_factor", (64, 64), 160), blocks, "native")
    assert not grid_cases.fits(Case("lu_factor", (64, 64), 2000), blocks, "native")
    assert not grid_cases.fits(Case("lu_factor", (64, 64), 160, torch.complex64), blocks, "native")


@pytest.mark.parametrize("count", [0, 2])
def test_devices_and_the_largest_cells_are_those_that_are_there(count, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    block = Block("4x4", (1, 2), cuda_shapes="9x9, 8x8", cuda_batches=(3,))
    shapes, batches, _, devices = grid_cases.parameters(block)
    assert shapes == (["4x4", "9x9", "8x8"] if count else ["4x4"])
    assert batches == ([1, 2, 3] if count else [1, 2])
    assert devices == ["cpu", "cuda:0", "cuda:1"][: 1 + count]


def test_the_largest_cells_are_measured_on_cuda_only():
    blocks = operations.get("lu_factor").cells["full"]
    for device, wanted in {"cpu": False, "cuda:0": True}.items():
        case = Case("lu_factor", (8192, 8192), device=device)
        assert grid_cases.fits(case, blocks, "native") == wanted
