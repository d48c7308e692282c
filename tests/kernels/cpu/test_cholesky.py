"""Cholesky factors of few rows and what is solved with them, beside PyTorch in double precision."""

import pytest
import torch

from strategies.formulas.domains import LOWER_TRIANGULAR, POSITIVE_DEFINITE
from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import cholesky, cholesky_inverse, cholesky_solve

SIZES = pytest.mark.parametrize("n", range(1, 7))
DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def of(dtype, *shape):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(len(shape)))


def definite(n, dtype):
    A = of(dtype, 40, n, n)
    return A @ A.mH + torch.eye(n, dtype=dtype)


def differences(ours, theirs, *inputs, scale=1.0):
    """Of outputs and gradients, over the norms of PyTorch's."""
    inputs = [each.requires_grad_() for each in inputs]
    wide = torch.complex128 if inputs[0].is_complex() else torch.float64
    result, expected = ours(*inputs), theirs(*[each.to(wide) for each in inputs])
    G = of(result.dtype, *result.shape) * scale
    gradients = torch.autograd.grad(result, inputs, G)
    due = torch.autograd.grad(expected, inputs, G.to(wide))
    # What PyTorch finds across the domain is no derivative.
    part = POSITIVE_DEFINITE.part if theirs is torch.linalg.cholesky else LOWER_TRIANGULAR.part
    gradients, due = ((*others, part(of_matrix)) for *others, of_matrix in (gradients, due))
    pairs = zip((result, *gradients), (expected, *due), strict=True)
    return [((x - y).norm() / y.norm()).item() for x, y in pairs]


@DTYPE
@SIZES
@pytest.mark.parametrize("scale", [1.0, 2.0**-30, 2.0**25])
def test_a_factor_and_its_gradient(n, dtype, scale):
    ours = lambda A: cholesky(A, strategy="fused")  # noqa: E731
    found = differences(ours, torch.linalg.cholesky, definite(n, dtype), scale=scale)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_a_solution_and_its_gradients(n, dtype, k, by_rows):
    L = torch.linalg.cholesky(definite(n, dtype))
    L = L.contiguous() if by_rows else L.mT.contiguous().mT
    ours = lambda B, L: cholesky_solve(B, L, strategy="fused")  # noqa: E731
    found = differences(ours, torch.cholesky_solve, of(dtype, 40, n, k), L.detach())
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
@pytest.mark.parametrize("scale", [1.0, 2.0**25])
def test_an_inverse_and_its_gradient(n, dtype, scale):
    L = torch.linalg.cholesky(definite(n, dtype)).detach()
    ours = lambda L: cholesky_inverse(L, strategy="fused")  # noqa: E731
    found = differences(ours, torch.cholesky_inverse, L, scale=scale)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@DTYPE
@SIZES
def test_only_the_lower_triangles_count(n, dtype):
    A = definite(n, dtype)
    G = of(dtype, *A.shape)
    plain, other = (
        torch.autograd.grad(cholesky(x, strategy="fused"), x, g)[0]
        for x, g in (
            (A.clone().requires_grad_(), G),
            ((A + of(dtype, n, n).triu(1)).requires_grad_(), G.tril()),
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
    found = cholesky_solve(of(dtype, 40, n, 1), L, strategy="fused")
    assert found[0].isfinite().all()
    assert not found[1].isfinite().all()
