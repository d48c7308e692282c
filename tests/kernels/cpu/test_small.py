"""Compiled factorizations and solutions against LAPACK's, which share no code with them."""

import pytest
import torch

from strategies.kernels.cpu import small

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]

# One matrix, less than a group, a group and a rest, two batch dimensions.
BATCHES = [(), (3,), (130,), (2, 3)]


def _matrices(batch, m, n, dtype):
    return torch.randn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)


def _assert_close(found, expected):
    tolerance = 300 * torch.finfo(found.dtype).eps
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_solve_is_that_of_lapack(n, batch, dtype):
    A, B = _matrices(batch, n, n, dtype), torch.randn(*batch, n, 2, dtype=dtype)
    X, *found = small.solve(A, B)
    expected = torch.linalg.lu_factor_ex(A)
    _assert_close(found[0], expected[0])
    assert all(map(torch.equal, found[1:], expected[1:]))
    _assert_close(X, torch.linalg.solve(A, B))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_inverse_is_that_of_lapack(n, batch, dtype):
    A = _matrices(batch, n, n, dtype)
    result, *found = small.inverse(A)
    expected = torch.linalg.lu_factor_ex(A)
    _assert_close(found[0], expected[0])
    assert all(map(torch.equal, found[1:], expected[1:]))
    _assert_close(result, torch.linalg.inv(A))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 5), (9, 4), (4, 1)])
def test_pseudo_inverse_is_that_of_lapack(m, n, batch, dtype):
    A = _matrices(batch, m, n, dtype)
    result, Q, R = small.pseudo_inverse(A)
    expected = torch.linalg.qr(A)
    _assert_close(Q, expected.Q)
    _assert_close(R, expected.R)
    assert torch.equal(R, R.triu())
    _assert_close(result, torch.linalg.pinv(A))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 5), (9, 4), (4, 1)])
def test_least_squares_is_that_of_lapack(m, n, batch, dtype):
    A, B = _matrices(batch, m, n, dtype), torch.randn(*batch, m, 2, dtype=dtype)
    X, *found = small.least_squares(A, B)
    for part, expected in zip(found, torch.geqrf(A), strict=True):
        _assert_close(part, expected)
    _assert_close(X, torch.linalg.lstsq(A, B).solution)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivots_are_compared_as_in_lapack(dtype):
    A = torch.randn(500, 12, 12, dtype=dtype)
    assert torch.equal(small.inverse(A).pivots, torch.linalg.lu_factor_ex(A).pivots)


def test_info_is_the_first_zero_pivot_of_each_matrix():
    A = torch.eye(4).repeat(20, 1, 1)
    A[3, 2, 2] = A[3, 3, 3] = A[17, 0, 0] = 0
    expected = torch.linalg.lu_factor_ex(A)
    for found in (small.inverse(A), small.solve(A, A)):
        assert torch.equal(found.info, expected.info)
        torch.testing.assert_close(found.LU, expected.LU)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_zero_column_is_passed_over(dtype):
    A = _matrices((20,), 6, 3, dtype)
    A[4, :, 1] = 0
    found = small.pseudo_inverse(A)
    _assert_close(found.Q @ found.R, A)
    assert found.R[4, 1, 1] == 0
    reflected = small.least_squares(A, A)
    _assert_close(reflected.reflectors[..., :3, :].triu(), found.R)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-0.9, -0.6, 0.6, 0.9])
def test_columns_whose_squares_overflow_or_vanish(exponent, dtype):
    numbers = torch.finfo(dtype)
    scale = (numbers.max if exponent > 0 else 1 / numbers.tiny) ** exponent
    A = _matrices((3,), 7, 3, dtype)
    expected = small.pseudo_inverse(A)
    found = small.pseudo_inverse(A * scale)
    _assert_close(found.Q, expected.Q)
    _assert_close(found.R / scale, expected.R)


def test_a_matrix_has_the_same_bits_alone_and_in_any_batch():
    A, B = _matrices((130,), 7, 7, torch.float64), torch.randn(130, 7, 2, dtype=torch.float64)
    for together, alone in (
        (small.solve(A, B), small.solve(A[77], B[77])),
        (small.inverse(A), small.inverse(A[77])),
        (small.pseudo_inverse(A), small.pseudo_inverse(A[77])),
        (small.least_squares(A, B), small.least_squares(A[77], B[77])),
    ):
        assert all(
            torch.equal(part[77], other) for part, other in zip(together, alone, strict=True)
        )


def test_inputs_of_any_strides_and_conjugated():
    A = _matrices((4, 20), 5, 5, torch.complex128)
    for given in (A.mT, A.mH, A[::2, 3:], A.transpose(0, 1), A[0].expand(3, 20, 5, 5)):
        _assert_close(small.inverse(given).solution, torch.linalg.inv(given))
        _assert_close(small.solve(given, given).solution, torch.eye(5).expand_as(given).to(given))


def test_what_is_not_a_number_stays_so():
    A = torch.eye(4).repeat(20, 1, 1)
    A[5, 1, 2] = torch.nan
    for found in (small.inverse(A).solution, small.pseudo_inverse(A).pseudo_inverse):
        assert found[5].isnan().any()
        torch.testing.assert_close(found[6:], A[6:])


@pytest.mark.parametrize("shape", [(12, 12), (16, 32, 32)])
def test_takes_small_matrices_and_batches_that_fill_a_group(shape):
    assert small.takes(torch.empty(shape, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(16, 16), (15, 32, 32), (100, 33, 32), (0, 4, 4), (4, 0)])
def test_leaves_others_to_the_library(shape):
    assert not small.takes(torch.empty(shape, dtype=torch.float64))
