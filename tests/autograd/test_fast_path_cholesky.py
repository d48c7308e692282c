"""Cholesky factors on the fast path."""

import functools

import pytest
import torch
from comparison import require_alike

from strategies import linalg
from strategies.formulas.domains import hermitian_part
from strategies.linalg import cholesky, cholesky_inverse
from tests.autograd.plain_calls import RHS, SQUARE, factor, positive

each_function = pytest.mark.parametrize(
    "operation", ["cholesky", "cholesky_solve", "cholesky_inverse"]
)


@pytest.mark.parametrize("n", [2, 30, 130])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@each_function
def test_factors_of_any_size_give_the_gradient_of_torch(operation, n, dtype, taken):
    A, B, G = (torch.randn(2, n, n, dtype=dtype) for _ in range(3))
    A = A @ A.mH / n + torch.eye(n)
    A = A if operation == "cholesky" else torch.linalg.cholesky(A)
    inputs = (B[..., :3], A) if operation == "cholesky_solve" else (A,)
    G = G[..., :3] if operation == "cholesky_solve" else G
    of_torch = torch.linalg.cholesky if operation == "cholesky" else getattr(torch, operation)

    def gradients(function, **chosen):
        leaves = [each.clone().requires_grad_() for each in inputs]
        return torch.autograd.grad(function(*leaves, **chosen), leaves, G)

    found = gradients(getattr(linalg, operation), strategy="fused")
    assert taken == [True]
    *rest, expected = gradients(of_torch)
    # PyTorch's is not Hermitian where the cotangent is complex.
    expected = hermitian_part(expected) if operation == "cholesky" else expected
    torch.testing.assert_close(found, (*rest, expected))


@pytest.mark.parametrize("upper", [False, True])
def test_a_factorization_reads_one_triangle(upper, taken):
    A = positive(SQUARE)
    triangle = (A.triu() if upper else A.tril()).requires_grad_()
    ours = functools.partial(linalg.cholesky_ex, upper=upper, strategy="fused")
    require_alike(ours, functools.partial(torch.linalg.cholesky_ex, upper=upper), triangle)
    assert taken == [True]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
@each_function
def test_factors_far_from_one_take_the_generic_path(operation, scale, taken):
    A = (positive(SQUARE) if operation == "cholesky" else factor(SQUARE)) * scale
    inputs = (RHS[:4], A) if operation == "cholesky_solve" else (A,)
    results = [getattr(linalg, operation)(*inputs, strategy=s) for s in ("fused", "batch_last")]
    assert torch.equal(*results)
    assert set(taken) == {False}


def test_a_matrix_without_a_factor_is_refused(taken):
    with pytest.raises(torch.linalg.LinAlgError, match="minor of order 2"):
        cholesky(torch.diag(torch.tensor([1.0, -1.0])), strategy="fused")
    assert linalg.cholesky_ex(-torch.eye(2), strategy="fused").info == 1
    with pytest.raises(torch.linalg.LinAlgError, match="element 2 is zero"):
        cholesky_inverse(torch.diag(torch.tensor([1.0, 0.0])), strategy="fused")
    assert set(taken) == {False}
