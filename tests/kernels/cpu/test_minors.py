"""Determinants of up to three rows and their gradients, singular ones too, beside exact ones."""

from fractions import Fraction

import pytest
import torch

from strategies.autograd import fast_path as module
from strategies.kernels.cpu import plans
from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import det

SINGULAR = {
    "zero": torch.zeros(3, 3),
    "corank 1": torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "a column of zeros": torch.tensor([[1.0, 0, 3], [4, 0, 6], [7, 0, 8]]),
    "corank 2": torch.tensor([[1.0, 2, 3], [2, 4, 6], [-1, -2, -3]]),
    "two rows": torch.tensor([[1.0, 2], [3, 6]]),
    "one row": torch.zeros(1, 1),
}


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """Whether the fast path did what it was asked for, call by call."""
    done = []
    monkeypatch.setattr(module, "_compiled", lambda _: None)
    for name in ("forward", "backward"):
        method = getattr(plans.Plan, name)

        def call(self, *arguments, method=method):
            result = method(self, *arguments)
            done.append(result is not None)
            return result

        monkeypatch.setattr(plans.Plan, name, call)
    return done


def cofactors(A):
    """By the definition; exact of real matrices."""
    n = len(A)
    exact = [[each if isinstance(each, complex) else Fraction(each) for each in row] for row in A]

    def cofactor(i, j):
        minor = [[exact[r][c] for c in range(n) if c != j] for r in range(n) if r != i]
        if len(minor) == 2:
            (a, b), (c, d) = minor
            return (-1) ** (i + j) * (a * d - b * c)
        return (-1) ** (i + j) * minor[0][0] if minor else 1

    return torch.tensor(
        [[complex(cofactor(i, j)) for j in range(n)] for i in range(n)], dtype=torch.complex128
    )


def gradient(A, cotangent=1.0):
    A = A.clone().requires_grad_()
    return torch.autograd.grad(det(A, strategy="fused"), A, torch.tensor(cotangent).to(A.dtype))[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SINGULAR)
def test_the_gradient_of_a_singular_matrix_is_that_of_its_cofactors(name, dtype, taken):
    A = SINGULAR[name].to(dtype)
    expected = cofactors(A.real.tolist()).real.to(dtype)
    torch.testing.assert_close(gradient(A), expected)
    torch.testing.assert_close(det(A, strategy="fused"), A[0, 0] * 0, rtol=0, atol=1e-4)
    assert all(taken)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_gradient_of_a_complex_matrix_is_conjugate(n, taken):
    A = torch.randn(n, n, dtype=torch.complex128)
    expected = (2 + 1j) * cofactors(A.tolist()).conj()
    torch.testing.assert_close(gradient(A, 2 + 1j), expected)
    assert all(taken)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_of_all_lengths_have_a_gradient_with_all_digits(dtype, taken):
    exponents = torch.tensor([-20.0, 0.0, 15.0], dtype=dtype)
    A = torch.randn(3, 3, dtype=dtype) * 2**exponents
    exact = cofactors(A.tolist()).real
    error = (gradient(A) - exact).norm(dim=0) / exact.norm(dim=0)
    assert error.max() < 30 * torch.finfo(dtype).eps
    assert all(taken)


@pytest.mark.parametrize("entry", [2.0**300, 2.0**-300, torch.nan, torch.inf])
def test_entries_whose_products_may_be_out_of_range_take_the_generic_path(entry, taken):
    A = torch.eye(3, dtype=torch.float64)
    A[0, 0] = entry
    torch.testing.assert_close(det(A, strategy="fused"), A[0, 0], equal_nan=True)
    assert taken == [False]
