"""Triangles of products against products that are formed first."""

from __future__ import annotations

import itertools

import pytest
import torch

from strategies.formulas.triangles import packed_product, triangle_of_product

LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.mT.contiguous().mT,
    "expanded": lambda t: t[..., :1, :].expand(t.shape),
}


def factors(batch, n, k, dtype):
    return torch.randn(*batch, n, k, dtype=dtype), torch.randn(*batch, k, n, dtype=dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(
    ("batch", "n", "k"),
    [
        *(((), 0, 2), ((), 1, 1), ((), 5, 0), ((), 128, 1), ((), 300, 3)),
        *(((2, 3), 130, 2), ((0,), 4, 1)),
    ],
)
def test_both_kinds(batch, n, k, dtype, layout):
    like = LAYOUTS[layout](torch.randn(*batch, n, n, dtype=dtype))
    (a, b), (c, d) = factors(batch, n, k, dtype), factors(batch, n, k, dtype)
    packed = packed_product(like, (a, b), (c, d))
    torch.testing.assert_close(packed, (a @ b).tril(-1) + (c @ d).triu())
    for upper, strictly in itertools.product([True, False], repeat=2):
        product = a @ b
        due = product.triu(int(strictly)) if upper else product.tril(-int(strictly))
        found = triangle_of_product(like, a, b, upper=upper, strictly=strictly)
        torch.testing.assert_close(found, due)
        assert layout == "expanded" or not n or found.stride() == like.stride()
