"""The rank of LU factors: products of factors of rank r have it, ill-conditioned matrices all."""

from __future__ import annotations

import pytest
import torch
from operations import DTYPES
from torch import Tensor

from strategies.factors import canonical_lu as _canonical_lu
from strategies.factors.canonical_lu import canonical


def rank_of(A: Tensor) -> Tensor:
    LU, pivots, _ = torch.linalg.lu_factor_ex(A)
    return canonical(LU, pivots).rank


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(5, 5), (30, 30), (40, 20), (20, 40)], ids=str)
def test_random_products_of_each_rank_have_it_but_for_very_few(shape, dtype):
    m, n = shape
    for rank in (0, 1, min(shape) // 2, min(shape) - 1):
        A = torch.randn(100, m, rank, dtype=dtype) @ torch.randn(100, rank, n, dtype=dtype)
        assert (rank_of(A) == rank).sum() >= 97


@pytest.mark.parametrize("size", [2, 5, 30])
@pytest.mark.parametrize("steps", ["geometric", "one small"])
def test_of_matrices_with_condition_number_1e14_none_is_taken_for_deficient(size, steps):
    U, V = torch.linalg.qr(torch.randn(2, 100, size, size, dtype=torch.float64)).Q
    values = torch.logspace(0, -14, size, dtype=torch.float64)
    if steps == "one small":
        values[:-1] = 1

    assert rank_of(U * values @ V).tolist() == [size] * 100


@pytest.mark.parametrize("scale", [1e-120, 1e-20, 1e20, 1e120])
def test_scaled_rows_and_columns_change_no_rank(scale):
    a, b = torch.randn(6, 3, dtype=torch.float64), torch.randn(3, 6, dtype=torch.float64)
    scales = torch.tensor([1, scale, 1, 1, scale, 1], dtype=torch.float64)

    assert rank_of(a @ b * scales) == 3
    assert rank_of((a @ b).mT * scales) == 3
    assert rank_of(torch.randn(6, 6, dtype=torch.float64) * scales) == 6


def test_the_rank_is_found_where_pivots_beyond_it_are_exactly_zero():
    assert rank_of(torch.ones(4, 4)) == 1
    assert rank_of(torch.diag(torch.tensor([3.0, 2.0, 0.0, 0.0]))) == 2
    assert rank_of(torch.zeros(3, 4)) == 0


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(6, 6), (9, 5), (5, 9)], ids=str)
def test_loops_and_library_calls_find_the_same_form(shape, dtype, monkeypatch):
    m, n = shape
    ranks = (torch.arange(40) % 6).reshape(4, 10)
    kept = (torch.arange(5) < ranks.unsqueeze(-1)).to(dtype).unsqueeze(-2)
    A = torch.randn(4, 10, m, 5, dtype=dtype) * kept @ torch.randn(4, 10, 5, n, dtype=dtype)
    LU, pivots, _ = torch.linalg.lu_factor_ex(A)

    compiled = canonical(LU, pivots)
    monkeypatch.setattr(_canonical_lu, "_LARGEST_COMPILED", 0)
    by_calls = canonical(LU, pivots)

    assert (compiled.rank == ranks).sum() >= 38
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(compiled, by_calls, strict=True))


def test_factors_of_full_rank_are_returned_as_they_are():
    LU, pivots, _ = torch.linalg.lu_factor_ex(torch.randn(3, 5, 5))

    found = canonical(LU, pivots)

    assert found.LU is LU
    assert found.pivots is pivots


def test_what_is_not_a_number_is_not_taken_for_roundoff():
    LU = torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, float("nan")]])
    assert canonical(LU, torch.tensor([1, 2], dtype=torch.int32)).rank == 2
