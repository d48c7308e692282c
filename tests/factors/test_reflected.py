"""A QR by its reflectors, against the pseudo-inverse that an SVD gives."""

import pytest
import torch

from strategies.factors import Reflected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128, torch.complex64])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("size", [(5, 5), (7, 3), (40, 20)], ids=str)
def test_every_map_is_that_of_the_pseudo_inverse(size, batch, dtype):
    m, n = size
    left, right = (torch.linalg.qr(torch.randn(*batch, k, n, dtype=dtype)).Q for k in (m, n))
    A = left * torch.linspace(1, 3, n) @ right
    b, x = torch.randn(*batch, m, 2, dtype=dtype), torch.randn(*batch, n, 2, dtype=dtype)
    expected, inverse = torch.linalg.pinv(A), Reflected.of(A)

    torch.testing.assert_close(inverse.dense(), expected)
    torch.testing.assert_close(inverse.apply(b), expected @ b)
    torch.testing.assert_close(inverse.apply_adjoint(x), expected.mH @ x)
    torch.testing.assert_close(inverse.apply_gram(x), expected @ expected.mH @ x)
    torch.testing.assert_close(inverse.from_range(inverse.to_range(b)), A @ expected @ b)


@pytest.mark.parametrize(
    ("size", "columns", "pays"),
    [((90, 40), 20, True), ((90, 40), 21, False), ((9, 2), 4, True), ((40, 40), 1, False)],
)
def test_they_pay_for_few_columns_of_a_tall_matrix(size, columns, pays):
    assert Reflected.pays(torch.empty(size), torch.empty(size[0], columns)) is pays
