import pytest
import torch
from comparison import drawn

from strategies.accuracy import gallery, gradient, measures
from strategies.formulas.amplification import (
    condition_number,
    lstsq_amplification,
    lu_amplification,
)


def test_hidden_residual_amplifies_beyond_the_condition_number():
    a = torch.diag(torch.tensor([1.0, 1e-4], dtype=torch.float64))
    a = torch.cat([a, torch.zeros(1, 2, dtype=torch.float64)])
    b = torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64)
    g = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    assert 1e7 < float(lstsq_amplification((a, b), (g,), None)) < 1e9


def test_lu_amplification_ignores_the_scaling_of_columns():
    a = drawn(8, 8)
    scaled = a * 2.0 ** -torch.arange(0, 80, 10)
    bounds = [lu_amplification((matrix,), (), None) for matrix in (a, scaled)]
    torch.testing.assert_close(*bounds)
    assert condition_number(scaled) > 1e10


def test_lu_amplification_predicts_the_error():
    for shape in ((16, 16), (48, 48), (100, 8)):
        for log10_cond in (1, 6, 12):
            a = gallery.random_with_condition(shape, torch.float64, log10_cond).matrix
            packed, pivots = torch.linalg.lu_factor(a.requires_grad_())
            g = drawn(*shape)
            computed = torch.autograd.grad(packed, a, g)
            error = gradient("lu_factor", (a,), (g,), pivots=pivots).relative_error(computed)
            bound = lu_amplification((a,), (g,), None)
            assert 0.05 < measures.error_ratio(error, bound, torch.float64) < 5


@pytest.mark.parametrize("scale", [2.0**-1070, 1.0, 2.0**1000])
def test_condition_number_survives_the_ends_of_the_range(scale):
    matrix = torch.diag(torch.tensor([8.0, 2.0], dtype=torch.float64)) * scale
    assert float(condition_number(matrix)) == pytest.approx(4.0)


def test_rank_says_which_singular_values_count():
    matrix = torch.diag(torch.tensor([8.0, 2.0, 0.0]))
    assert float(condition_number(matrix, 2)) == pytest.approx(4.0)
    assert float(condition_number(matrix, 0)) == 1.0
