"""Stability ratios, by cases whose rounding errors are known in closed form."""

import math

import pytest
import torch

from strategies.accuracy import gallery
from strategies.accuracy.stability import references
from strategies.formulas.amplification import unit_roundoff

DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128


def test_the_unit_is_what_rounding_a_number_does():
    # f(a) = 1/a moves by u/a; its gradient −g/a² by up to 3u of itself.
    for dtype in DTYPES:
        a, g = torch.tensor([[4.0]], dtype=dtype), torch.tensor([[1.0]], dtype=dtype)
        (result,), (gradient,) = references("inv", (a,), (g,))
        step = torch.finfo(dtype).eps
        assert result.ratio(1 / a * (1 + 8 * step)).normwise == pytest.approx(16, rel=0.1)
        assert result.ratio(1 / a).normwise == 0
        found = gradient.ratio(-1 / a**2 * (1 + 8 * step)).normwise
        assert 16 / 3.5 < found <= 16.1


def test_conditioning_explains_an_error():
    # What rounding does to [[1, 1], [1, 1 + t]]⁻¹ grows as 1/t.
    for t in (1e-3, 1e-6):
        A = torch.tensor([[1.0, 1.0], [1.0, 1.0 + t]], dtype=torch.float64)
        (result,), _ = references("inv", (A,), (torch.ones_like(A),))
        exact = torch.tensor([[1 + t, -1], [-1, 1]], dtype=torch.float64) / (A[1, 1] - 1)
        error = unit_roundoff(torch.float64) / t
        ratio = result.ratio(exact * (1 + error)).normwise
        assert 0.1 < ratio < 10


def test_a_column_may_not_hide_behind_a_large_one():
    A = torch.diag(torch.tensor([1.0, 1e-12], dtype=torch.float64))
    (result,), _ = references("inv", (A,), (torch.ones_like(A),))
    wrong = torch.linalg.inv(A)
    wrong[0, 0] += 1.0
    # Of the norm the error is 1e-12; neither norm nor column moves by as much by rounding.
    assert result.ratio(wrong).columnwise > 1e3


def test_the_ends_of_the_range_are_no_excuse():
    for dtype in DTYPES:
        scale = torch.finfo(dtype).max ** 0.5
        A, G = torch.eye(2, dtype=dtype) * scale, torch.eye(2, dtype=dtype) * scale
        (result,), (gradient,) = references("inv", (A,), (G,))
        assert result.is_representable
        assert result.ratio(torch.zeros_like(A)).normwise > 1e5
        assert gradient.ratio(torch.full_like(A, math.nan)).normwise == math.inf
        assert gradient.ratio(-torch.eye(2, dtype=dtype) / scale).normwise < 4


def test_what_no_dtype_holds_is_said():
    _, (gradient,) = references("inv", (torch.tensor([[1e-30]]),), (torch.ones(1, 1),))
    assert not gradient.is_representable


def test_zero_allows_only_zero():
    zero = torch.zeros(2, 2, dtype=torch.float64)
    (result,), _ = references("pinv", (zero,), (torch.ones_like(zero),), rank=0)
    assert result.ratio(zero).normwise == 0
    assert result.ratio(zero + 1.0).normwise > 1e30


def test_deficient_rank_keeps_its_rank_under_perturbations():
    specimen = gallery.random_with_rank((6, 4), torch.float64, 2, seed=1)
    A, G = specimen.matrix, torch.ones(4, 6, dtype=torch.float64)
    (result,), _ = references("pinv", (A,), (G,), rank=2)
    assert result.ratio(torch.linalg.pinv(A, rtol=1e-10)).normwise < 30
    full = torch.linalg.pinv(A + 1e-9 * torch.eye(6, 4, dtype=torch.float64), rtol=0.0)
    assert result.ratio(full).normwise > 1e10
    with pytest.raises(ValueError, match="rank"):
        references("pinv", (A,), (G,), rank=3)


def test_a_real_slogdet_has_one_cotangent():
    A = torch.eye(2, dtype=torch.float64) * 3
    (result,), (gradient,) = references("slogdet", (A,), (torch.tensor(1.0).double(),))
    assert result.ratio(torch.tensor(2 * math.log(3))).normwise > 1e3  # float32
    assert gradient.ratio(torch.eye(2).double() / 3).normwise < 2


@pytest.mark.parametrize(
    "matrix",
    [
        [[1e10, 0, 0], [0, 1e-10, 1e-10], [0, 1e-10, 1e-10]],
        [[0, 0, 0], [1, 0, 0], [2, 3, 0]],
        [[0, 0], [0, 0]],
    ],
)
def test_a_determinant_may_stay_zero_under_perturbations(matrix):
    A = torch.tensor(matrix, dtype=torch.float64)
    rank = int(torch.linalg.matrix_rank(A, rtol=0, atol=1e-20))
    (result,), (gradient,) = references("det", (A,), (torch.tensor(1.0).double(),), rank=rank)
    assert result.ratio(torch.zeros(())).normwise == 0
    assert gradient.ratio(torch.full_like(A, 7.0)).normwise > 1e10
