"""Inputs have the condition number or the rank that was asked for."""

import pytest
import torch

from strategies.measuring.case import DTYPES, Case


@pytest.mark.parametrize(("log10_cond", "expected"), [(None, 10.0), (0, 1.0), (6, 1e6)])
def test_condition_number(log10_cond, expected):
    for shape in [(6, 6), (9, 4), (4, 9)]:
        (a,) = Case("pinv", shape, batch=2, log10_cond=log10_cond).inputs()
        assert torch.linalg.cond(a).tolist() == pytest.approx([expected] * 2, rel=1e-6)


def test_the_determinant_of_a_large_matrix_is_about_one():
    (a,) = Case("det", (300, 300), dtype=torch.float32).inputs()
    assert torch.linalg.det(a).abs().item() == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_rank_is_exact(rank):
    for dtype in DTYPES.values():
        (a,) = Case("pinv", (12, 8), batch=3, dtype=dtype, rank=rank).inputs()
        parts = torch.view_as_real(a) if dtype.is_complex else a
        assert torch.equal(parts, parts.round())
        singular = torch.linalg.svdvals(a.to(torch.complex128))
        assert (singular[..., rank:] < 1e-12).all()
        if rank:
            assert (singular[..., rank - 1] * 100 > singular[..., 0]).all()
