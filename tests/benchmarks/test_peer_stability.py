"""Results and gradients of other libraries in hard cases, compared with exact ones."""

import pytest
import torch

from strategies import operations
from strategies.measuring import store
from strategies.measuring.case import Case

pytest.importorskip("jax")
pytest.importorskip("lineax")
pytest.importorskip("flint")

from benchmarks.peers import jax_peer, lineax_peer
from benchmarks.peers.stability import judged, main


def cells(*texts):
    return list(judged(Case.parse(text) for text in texts))


@pytest.mark.slow
def test_every_operation_is_computed_real_and_complex_single_and_in_batches():
    for operation in operations.names():
        k = " k=2" if operations.get(operation).arity == 2 else ""
        sizes = ["4x4", "3x4x4"] if operations.get(operation).square else ["6x4", "3x4x6"]
        for size in sizes:
            for dtype in ("float32", "complex128"):
                (cell,) = cells(f"{operation} {size}{k} {dtype} seed=3")
                names = {each.strategy for each in cell}
                solved = operation in lineax_peer.SOLVED
                assert names == ({"jax", "lineax"} if solved else {"jax"})
                assert all(each.stability.worst < 50 for each in cell), cell


def test_least_squares_is_stable_where_pytorch_loses_all_digits():
    (cell,) = cells("lstsq 16x4 cond=1e6 B=image G=gram seed=1")  # as in tests/measuring
    assert all(each.stability.worst < 100 for each in cell)


def test_lineax_solves_deficient_least_squares_by_an_svd():
    (cell,) = cells("lstsq 9x4 rank=2 seed=1")
    assert cell.get("lineax").stability.worst < 100


def test_lu_is_compared_only_where_the_rows_are_swapped_as_by_pytorch(monkeypatch):
    case = Case.parse("lu_factor 5x4")
    assert jax_peer.pivots_as_torch(case)
    plain = torch.linalg.lu_factor_ex

    def other(matrix):
        LU, pivots, info = plain(matrix)
        return LU, pivots.flip(-1), info

    monkeypatch.setattr(torch.linalg, "lu_factor_ex", other)
    assert not jax_peer.pivots_as_torch(case)


def test_what_has_no_exact_result_is_left_out():
    assert cells("slogdet 4x4 rank=2") == []


def test_the_command_resumes_and_draws_the_same_cases(tmp_path):
    kept = tmp_path / "peers.json"
    main(out=kept, cases=2, seed=5)
    main(out=kept, cases=3, seed=5)
    main(out=tmp_path / "again.json", cases=3, seed=5)
    (run,), (again,) = (store.load(tmp_path / name) for name in ("peers.json", "again.json"))
    assert run.kind == "peer_stability"
    assert set(run.machine.libraries) == {"jax", "lineax"}
    assert [cell.case for cell in run.cells] == [cell.case for cell in again.cells]
    assert len(set(run.cells)) == 3
