"""Forms of an inverse against the pseudo-inverse that an SVD gives."""

import pytest
import torch

from strategies.factors import Reflected
from strategies.factors.preconditioned import Preconditioned

close = torch.testing.assert_close
CASES = [
    *(
        (Reflected, size, batch)
        for size in ((5, 5), (7, 3), (40, 20))
        for batch in ((), (3,), (2, 3))
    ),
    *((Preconditioned, size, ()) for size in ((4, 2), (2, 4), (3, 3))),
    (Preconditioned, (3, 2), (2,)),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.complex64])
@pytest.mark.parametrize(("form", "size", "batch"), CASES)
def test_every_map_is_that_of_the_pseudo_inverse(form, size, batch, dtype):
    (m, n), k = size, min(size)
    left, right = (torch.linalg.qr(torch.randn(*batch, each, k, dtype=dtype)).Q for each in size)
    A = left * torch.linspace(1, 3, k) @ right.mH
    b, x = torch.randn(*batch, m, 2, dtype=dtype), torch.randn(*batch, n, 2, dtype=dtype)
    expected, inverse = torch.linalg.pinv(A), form.of(A)
    close(inverse.dense(), expected)
    close(inverse.apply(b), expected @ b)
    close(inverse.apply_adjoint(x), expected.mH @ x)
    close(inverse.apply_gram(x), expected @ expected.mH @ x)
    close(inverse.from_range(inverse.to_range(b)), A @ expected @ b)
    close(inverse.range_complement(b), b - A @ expected @ b)
    close(inverse.null_complement(x), x - expected @ A @ x)
    close(inverse.to_range(inverse.from_range(inverse.to_range(b))), inverse.to_range(b))


@pytest.mark.parametrize(
    ("size", "columns", "pays"),
    [((90, 40), 20, True), ((90, 40), 21, False), ((9, 2), 4, True), ((40, 40), 1, False)],
)
def test_reflectors_pay_for_few_columns_of_a_tall_matrix(size, columns, pays):
    assert Reflected.pays(torch.empty(size), torch.empty(size[0], columns)) is pays
