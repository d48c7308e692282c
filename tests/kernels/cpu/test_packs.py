"""Factors in packs of matrices beside LAPACK's, which shares no code with them."""

import pytest
import torch
from comparison import drawn

from strategies.kernels.cpu.library import DTYPES
from strategies.linalg import lu_factor, qr

DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@DTYPE
def test_pivots_are_compared_as_in_lapack(dtype):
    A = drawn(500, 12, 12, dtype=dtype)
    expected = torch.linalg.lu_factor_ex(A).pivots
    assert torch.equal(lu_factor(A, strategy="batch_last").pivots, expected)


@DTYPE
def test_columns_whose_squares_overflow_or_vanish(dtype):
    numbers = torch.finfo(dtype)
    A = drawn(13, 7, 3, dtype=dtype) + 3 * torch.eye(7, 3, dtype=dtype)
    expected = torch.linalg.qr(A)
    for exponent in (-0.9, -0.6, 0.6, 0.9):
        scale = (numbers.max if exponent > 0 else 1 / numbers.tiny) ** exponent
        Q, R = qr(A * scale, strategy="batch_last")
        torch.testing.assert_close(Q, expected.Q)
        torch.testing.assert_close(R / scale, expected.R)


@DTYPE
def test_columns_of_subnormal_numbers(dtype):
    scale = torch.finfo(dtype).tiny / 8
    A = drawn(13, 7, 3, dtype=dtype) * scale
    Q, R = qr(A, strategy="batch_last")
    torch.testing.assert_close(Q.mH @ Q, torch.eye(3, dtype=dtype).expand(13, 3, 3))
    torch.testing.assert_close(Q @ R, A, rtol=0, atol=1e-4 * scale)


@DTYPE
def test_a_diagonal_changes_sign_for_the_smallest_entry_below(dtype):
    A = torch.eye(4, 3, dtype=dtype).repeat(13, 1, 1)
    A[:, 3] = torch.finfo(dtype).tiny ** 0.6
    torch.testing.assert_close(qr(A, strategy="batch_last"), torch.linalg.qr(A))


@DTYPE
def test_a_zero_column_is_passed_over(dtype):
    A = drawn(20, 6, 3, dtype=dtype)
    A[4, :, 1] = 0
    Q, R = qr(A, strategy="batch_last")
    torch.testing.assert_close(Q @ R, A)
    assert R[4, 1, 1] == 0


def test_what_is_not_a_number_stays_in_its_matrix():
    A = torch.eye(4).repeat(20, 1, 1)[..., :3]
    A[5, 1, 2] = torch.nan
    R = qr(A, strategy="batch_last").R
    assert R[5].isnan().any()
    assert R[torch.arange(20) != 5].isfinite().all()
