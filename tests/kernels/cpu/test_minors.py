"""Determinants of up to three rows and their gradients, singular ones too, beside exact ones."""

from fractions import Fraction

import pytest
import torch

from strategies import linalg
from strategies.kernels.cpu.library import DTYPES
from tests.factors.cofactors import cofactors
from tests.kernels.cpu.by_plan import computed, plan_of

SINGULAR = {
    "zero": torch.zeros(3, 3),
    "corank 1": torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "a column of zeros": torch.tensor([[1.0, 0, 3], [4, 0, 6], [7, 0, 8]]),
    "corank 2": torch.tensor([[1.0, 2, 3], [2, 4, 6], [-1, -2, -3]]),
    "two rows": torch.tensor([[1.0, 2], [3, 6]]),
    "one row": torch.zeros(1, 1),
}


DET = "factors", "det"


def exact(A):
    """The cofactors of a real matrix."""
    rows = [[Fraction(x) for x in row] for row in A.tolist()]
    return torch.tensor([[float(x) for x in row] for row in cofactors(rows)], dtype=torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SINGULAR)
def test_the_gradient_of_a_singular_matrix_is_that_of_its_cofactors(name, dtype):
    A = SINGULAR[name].to(dtype)
    (det,), _, (gradient,) = computed(DET, (A,), torch.ones_like)
    torch.testing.assert_close(gradient, exact(A.real).to(dtype))
    torch.testing.assert_close(det, A[0, 0] * 0, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_gradient_of_a_complex_matrix_is_conjugate(n):
    A = torch.randn(n, n, dtype=torch.complex128)
    _, (cotangent,), (gradient,) = computed(DET, (A,))
    of_det = torch.tensor(cofactors(A.tolist()), dtype=A.dtype)
    torch.testing.assert_close(gradient, cotangent * of_det.conj())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_of_all_lengths_have_a_gradient_with_all_digits(dtype):
    exponents = torch.tensor([-20.0, 0.0, 15.0], dtype=dtype)
    A = torch.randn(3, 3, dtype=dtype) * 2**exponents
    *_, (gradient,) = computed(DET, (A,), torch.ones_like)
    error = (gradient - exact(A)).norm(dim=0) / exact(A).norm(dim=0)
    assert error.max() < 30 * torch.finfo(dtype).eps


@pytest.mark.parametrize("entry", [2.0**300, 2.0**-300, torch.nan, torch.inf])
def test_entries_whose_products_may_be_out_of_range_take_the_generic_path(entry):
    A = torch.eye(3, dtype=torch.float64)
    A[0, 0] = entry
    assert plan_of(DET, A).forward((A,)) is None
    torch.testing.assert_close(linalg.det(A, strategy="fused"), A[0, 0], equal_nan=True)
