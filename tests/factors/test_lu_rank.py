"""The rank of LU factors: products of factors of rank r have it, ill-conditioned matrices all."""

import pytest
import torch

from strategies.factors.lu_rank import NOT_FINITE, canonical
from strategies.kernels.cpu import calls

DTYPES = [torch.float64, torch.complex128, torch.float32, torch.complex64]


def rank_of(A):
    LU, pivots, _ = torch.linalg.lu_factor_ex(A)
    return canonical(LU, pivots).rank


def test_random_products_of_each_rank_have_it_but_for_very_few():
    for dtype in DTYPES:
        for m, n in ((5, 5), (30, 30), (40, 20), (20, 40)):
            for rank in (0, 1, min(m, n) // 2, min(m, n) - 1):
                a, b = (torch.randn(100, side, rank, dtype=dtype) for side in (m, n))
                assert (rank_of(a @ b.mT) == rank).sum() >= 97


def test_no_matrix_with_condition_number_1e14_is_taken_for_deficient():
    for size in (2, 5, 30):
        U, V = torch.linalg.qr(torch.randn(2, 100, size, size, dtype=torch.float64)).Q
        geometric = torch.logspace(0, -14, size, dtype=torch.float64)
        one_small = geometric.clone()
        one_small[:-1] = 1
        for values in (geometric, one_small):
            assert rank_of(U * values @ V).tolist() == [size] * 100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 8, 40])
@pytest.mark.parametrize("ratio", [0, 30, 1000])
def test_a_repeated_row_is_found_where_its_last_column_is_zero(ratio, n, dtype, monkeypatch):
    """Its pivot has no large terms: roundoff in one entry of L after another led to it."""
    A = torch.diag_embed(1 + torch.rand(100, n)).to(dtype)
    A.diagonal(1, -2, -1).copy_(ratio * torch.rand(100, n - 1))
    A[:, -1] = A[:, 0] * torch.rand(100, 1)
    assert (rank_of(A) < n).all()
    monkeypatch.setattr(calls.Call, "supports", lambda *_: False)
    assert (rank_of(A) < n).all()


def test_a_triangle_is_of_full_rank_whatever_its_condition_number():
    for dtype in DTYPES:
        for ratio in (0, 1, 1000):
            A = torch.diag_embed(1 + torch.rand(100, 12)).to(dtype)
            A.diagonal(1, -2, -1).copy_(ratio * torch.rand(100, 11))
            assert (rank_of(A) == 12).all()
            assert (rank_of(A.mT) == 12).all()


def test_scaled_rows_and_columns_change_no_rank():
    product = torch.randn(6, 3, dtype=torch.float64) @ torch.randn(3, 6, dtype=torch.float64)
    for scale in (1e-120, 1e-20, 1e20, 1e120):
        scales = torch.tensor([1, scale, 1, 1, scale, 1], dtype=torch.float64)
        assert rank_of(product * scales) == 3
        assert rank_of(product.mT * scales) == 3
        assert rank_of(torch.randn(6, 6, dtype=torch.float64) * scales) == 6


def test_the_rank_is_found_where_pivots_beyond_it_are_exactly_zero():
    assert rank_of(torch.ones(4, 4)) == 1
    assert rank_of(torch.diag(torch.tensor([3.0, 2.0, 0.0, 0.0]))) == 2
    assert rank_of(torch.zeros(3, 4)) == 0


def test_loops_and_library_calls_find_the_same_form(monkeypatch):
    ranks = (torch.arange(40) % 6).reshape(4, 10)
    for dtype in DTYPES:
        for m, n in ((6, 6), (9, 5), (5, 9)):
            kept = (torch.arange(5) < ranks.unsqueeze(-1)).to(dtype).unsqueeze(-2)
            left, right = (torch.randn(4, 10, side, 5, dtype=dtype) for side in (m, n))
            LU, pivots, _ = torch.linalg.lu_factor_ex(left * kept @ right.mT)
            compiled = canonical(LU, pivots)
            with monkeypatch.context() as patch:
                patch.setattr(calls.Call, "supports", lambda *_: False)
                by_calls = canonical(LU, pivots)
            assert (compiled.rank == ranks).sum() >= 38
            assert all(map(torch.equal, compiled[:4], by_calls[:4]))


def test_factors_of_full_rank_are_returned_as_they_are():
    LU, pivots, _ = torch.linalg.lu_factor_ex(torch.randn(3, 5, 5))
    found = canonical(LU, pivots)
    assert found.LU is LU
    assert found.pivots is pivots


def test_a_matrix_with_nan_has_no_rank():
    LU = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, float("nan")]])
    assert canonical(LU, torch.tensor([1, 2], dtype=torch.int32)).rank == NOT_FINITE
