"""The reverse of a Cholesky factorization by blocks, against the formula."""

import pytest
import torch

import strategies
from strategies.builtin import blocked_cholesky
from strategies.factors import Triangular
from strategies.formulas import cholesky as formula
from strategies.formulas.domains import LOWER_TRIANGULAR

DTYPES = [torch.float64, torch.float32, torch.complex128, torch.complex64]
SHAPES = [(1, 1), (2, 2), (23, 23), (25, 25), (97, 97), (3, 40, 40), (1, 30, 30), (2, 3, 5, 5)]

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def drawn(shape, dtype):
    L = LOWER_TRIANGULAR.member(torch.randn(shape, dtype=dtype) + 4 * torch.eye(shape[-1]))
    G = torch.randn(shape, dtype=dtype)
    return L, G, formula.backward(Triangular, L, G)


def require_close(found, expected):
    error = torch.linalg.vector_norm(found - expected) / torch.linalg.vector_norm(expected)
    assert error < 1000 * torch.finfo(expected.dtype).eps


@each_dtype
@pytest.mark.parametrize("name", ["blocked_lu", "fused"])
def test_the_kernels_agree_with_the_formula(name, dtype):
    for shape in SHAPES:
        L, G, expected = drawn(shape, dtype)
        for layout in (lambda t: t, lambda t: t.mT.contiguous().mT):
            found = strategies.get(name).cholesky_backward(layout(L), layout(G))
            if found is not NotImplemented:
                require_close(found, expected)


@each_dtype
def test_factors_may_be_repeated_in_memory_as_under_vmap(dtype):
    L, _, _ = drawn((2, 5, 5), dtype)
    cotangents = torch.randn(3, 2, 5, 5, dtype=dtype)
    by_columns = L.mT.contiguous().mT.expand(3, *L.shape)
    found = strategies.get("blocked_lu").cholesky_backward(by_columns, cotangents)
    for gradient, cotangent in zip(found, cotangents, strict=True):
        require_close(gradient, formula.backward(Triangular, L, cotangent))


@each_dtype
def test_so_do_the_operations_of_torch_where_there_is_no_kernel(dtype):
    for shape in SHAPES:
        if len(shape) < 4:
            L, G, expected = drawn(shape, dtype)
            for width in (16, 100):
                require_close(blocked_cholesky.reverse(L, G, width), expected)
