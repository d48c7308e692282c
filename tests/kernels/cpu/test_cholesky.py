"""Cholesky factors of few rows and what is solved with them, beside PyTorch in double precision."""

import pytest
import torch

from strategies.formulas.domains import LOWER_TRIANGULAR, POSITIVE_DEFINITE
from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import cholesky, cholesky_inverse, cholesky_solve
from tests.kernels.cpu.few_rows import differences, drawn

SIZES = pytest.mark.parametrize("n", range(1, 7))
DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def definite(n, dtype):
    A = drawn(dtype, 40, n, n)
    return A @ A.mH + torch.eye(n, dtype=dtype)


@DTYPE
@SIZES
@pytest.mark.parametrize("scale", [1.0, 2.0**-30, 2.0**25])
def test_a_factor_and_its_gradient(n, dtype, scale):
    ours = lambda A: cholesky(A, strategy="fused")  # noqa: E731
    # What PyTorch finds across the domain is no derivative, here and below.
    A, part = definite(n, dtype), POSITIVE_DEFINITE.part
    found = differences(ours, torch.linalg.cholesky, A, scale=scale, part=part)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_a_solution_and_its_gradients(n, dtype, k, by_rows):
    L = torch.linalg.cholesky(definite(n, dtype))
    L = L.contiguous() if by_rows else L.mT.contiguous().mT
    ours = lambda B, L: cholesky_solve(B, L, strategy="fused")  # noqa: E731
    B, part = drawn(dtype, 40, n, k), LOWER_TRIANGULAR.part
    found = differences(ours, torch.cholesky_solve, B, L.detach(), part=part)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
@pytest.mark.parametrize("scale", [1.0, 2.0**25])
def test_an_inverse_and_its_gradient(n, dtype, scale):
    L = torch.linalg.cholesky(definite(n, dtype)).detach()
    ours = lambda L: cholesky_inverse(L, strategy="fused")  # noqa: E731
    part = LOWER_TRIANGULAR.part
    found = differences(ours, torch.cholesky_inverse, L, scale=scale, part=part)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
def test_only_the_lower_triangles_count(n, dtype):
    A = definite(n, dtype)
    G = drawn(dtype, *A.shape)
    plain, other = (
        torch.autograd.grad(cholesky(x, strategy="fused"), x, g)[0]
        for x, g in (
            (A.clone().requires_grad_(), G),
            ((A + drawn(dtype, n, n).triu(1)).requires_grad_(), G.tril()),
        )
    )
    assert torch.equal(plain, other)


@DTYPE
@SIZES
def test_a_matrix_that_is_not_definite_is_refused_as_by_pytorch(n, dtype):
    A = definite(n, dtype)
    A[1, -1, -1] = -1
    with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1"):
        cholesky(A, strategy="fused")


@DTYPE
@SIZES
def test_a_factor_with_a_zero_on_its_diagonal_has_what_pytorch_has(n, dtype):
    L = torch.linalg.cholesky(definite(n, dtype))
    L[1, -1, -1] = 0
    found = cholesky_solve(drawn(dtype, 40, n, 1), L, strategy="fused")
    assert found[0].isfinite().all()
    assert not found[1].isfinite().all()
