"""Under `vmap` no value can be asked for: what an operation checks, it must check in batched code."""

import pytest
import torch

import strategies
from strategies import linalg


@pytest.mark.parametrize("name", strategies.available())
def test_lstsq_decides_on_residuals(name):
    A, b = torch.randn(3, 7, 4, dtype=torch.float64), torch.randn(7, 1, dtype=torch.float64)

    def solution(A):
        return linalg.lstsq(A, b, strategy=name).solution.sum()

    mapped = torch.func.vmap(torch.func.grad(solution))(A)
    assert torch.allclose(mapped, torch.stack([torch.func.grad(solution)(one) for one in A]))


def test_lu_factor_refuses_zero_pivots():
    factor = torch.func.vmap(lambda A: linalg.lu_factor(A, strategy="triangular_solve").LU)
    good = torch.randn(3, 4, 4, dtype=torch.float64)
    assert torch.allclose(factor(good), torch.linalg.lu_factor(good).LU)
    with pytest.raises(torch.linalg.LinAlgError, match=r"U\[1,1\] is zero"):
        factor(torch.zeros(3, 4, 4))
