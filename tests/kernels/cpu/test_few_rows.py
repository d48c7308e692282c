"""What is computed of square matrices of few rows, beside PyTorch in double precision."""

import functools
import itertools

import pytest
import torch
from comparison import drawn
from torch.utils._pytree import tree_leaves

from strategies.formulas.domains import LOWER_TRIANGULAR, POSITIVE_DEFINITE
from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import cholesky, cholesky_inverse, cholesky_solve, det, inv, slogdet, solve
from strategies.testing.problems import doubled
from tests.kernels.cpu.by_plan import pivoted

ROWS = pytest.mark.parametrize("n", range(1, 10))
DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def differences(ours, theirs, *inputs, scale=1.0, part=lambda gradient: gradient):
    """Of outputs and gradients, the largest over the norms of PyTorch's for a matrix of the batch.

    A part of the last gradient may count.
    """
    inputs = [each.requires_grad_() for each in inputs]
    result, expected = ours(*inputs), theirs(*map(doubled, inputs))
    G = drawn(*result.shape, dtype=result.dtype, seed=1) * scale
    *found, last = result, *torch.autograd.grad(result, inputs, G)
    *due, due_last = expected, *torch.autograd.grad(expected, inputs, doubled(G))
    pairs = zip([*found, part(last)], [*due, part(due_last)], strict=True)
    norms = [[each.flatten(1).norm(dim=1) for each in (x - y, y)] for x, y in pairs]
    return [(error / size).max().item() for error, size in norms]


def definite(n, dtype):
    A = drawn(40, n, n, dtype=dtype)
    return A @ A.mH + torch.eye(n, dtype=dtype)


def of_square(n, dtype):
    """One by one, and in packs, the last of which is not full."""
    for count in (3, 41):
        A = pivoted(n, dtype, count)
        yield inv, torch.linalg.inv, (A,), {}
        for k in (1, 3):
            yield solve, torch.linalg.solve, (A, drawn(count, n, k, dtype=dtype)), {}


def of_determinants(n, dtype):
    A = pivoted(n, dtype, 60)
    for ours, theirs in ((det, torch.linalg.det), (slogdet, torch.linalg.slogdet)):
        yield functools.partial(stacked, ours), functools.partial(stacked, theirs), (A,), {}


def stacked(function, A, **options):
    """Its results for each matrix as one vector."""
    found = function(A, **options)
    return torch.stack([each.to(A.dtype) for each in tree_leaves(found)], -1)


def of_definite(n, dtype):
    """What PyTorch finds across the domain is no derivative."""
    A, part = definite(n, dtype), POSITIVE_DEFINITE.part
    for scale in (1.0, 2.0**-30, 2.0**25):
        yield cholesky, torch.linalg.cholesky, (A,), {"scale": scale, "part": part}


def of_factors(n, dtype):
    L, part = torch.linalg.cholesky(definite(n, dtype)), LOWER_TRIANGULAR.part
    for scale in (1.0, 2.0**25):
        yield cholesky_inverse, torch.cholesky_inverse, (L,), {"scale": scale, "part": part}
    for k, layout in itertools.product((1, 3), (L.contiguous(), L.mT.contiguous().mT)):
        B = drawn(40, n, k, dtype=dtype)
        yield cholesky_solve, torch.cholesky_solve, (B, layout), {"part": part}


@DTYPE
@ROWS
@pytest.mark.parametrize("calls", [of_square, of_determinants, of_definite, of_factors])
def test_results_and_gradients_are_those_of_pytorch(calls, n, dtype):
    for ours, theirs, inputs, options in calls(n, dtype):
        by_plan = functools.partial(ours, strategy="fused")
        found = differences(by_plan, theirs, *(each.detach() for each in inputs), **options)
        result, *gradients = found
        assert result < 1e3 * torch.finfo(dtype).eps, (ours, options)
        assert max(gradients) < 1e4 * torch.finfo(dtype).eps, (ours, options)


@DTYPE
@ROWS
def test_only_the_lower_triangles_count(n, dtype):
    def gradient(A, G):
        A.requires_grad_()
        return torch.autograd.grad(cholesky(A, strategy="fused"), A, G)[0]

    A, G = definite(n, dtype), drawn(40, n, n, dtype=dtype)
    other = A + drawn(n, n, dtype=dtype).triu(1)
    assert torch.equal(gradient(A, G), gradient(other, G.tril()))


@DTYPE
@ROWS
def test_a_factor_with_a_zero_on_its_diagonal_has_what_pytorch_has(n, dtype):
    L = torch.linalg.cholesky(definite(n, dtype))
    L[1, -1, -1] = 0
    B = drawn(40, n, 1, dtype=dtype)
    found, due = cholesky_solve(B, L, strategy="fused"), torch.cholesky_solve(B, L)
    assert not found[1].isfinite().any()
    torch.testing.assert_close(found, due, equal_nan=True)
