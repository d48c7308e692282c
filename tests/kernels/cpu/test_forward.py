"""CPU kernels that factor and solve against LAPACK, which shares no code with them."""

import torch

from strategies.kernels.cpu.forward import inv, lstsq, pinv, solve

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]

# One matrix, less than a group, a group and a rest, two batch dimensions.
BATCHES = [(), (3,), (130,), (2, 3)]


def _matrices(batch, m, n, dtype):
    return torch.randn(*batch, m, n, dtype=dtype) + 3 * torch.eye(m, n, dtype=dtype)


def _problems(*shapes):
    for m, n in shapes:
        for batch in BATCHES:
            for dtype in DTYPES:
                yield _matrices(batch, m, n, dtype), torch.randn(*batch, m, 2, dtype=dtype)


def _assert_close(found, expected, condition=1.0):
    error = torch.linalg.vector_norm(found - expected)
    scale = torch.linalg.vector_norm(expected)
    assert error <= 50 * torch.finfo(found.dtype).eps * condition * scale


def test_lu_solve_and_inv_are_those_of_lapack():
    for A, B in _problems((1, 1), (2, 2), (7, 7)):
        condition = float(torch.linalg.cond(A).max())
        expected = torch.linalg.lu_factor_ex(A)
        for (result, *factors), exact in (
            (solve(A, B), torch.linalg.solve(A, B)),
            (inv(A), torch.linalg.inv(A)),
        ):
            _assert_close(factors[0], expected[0], condition)
            assert all(map(torch.equal, factors[1:], expected[1:]))
            _assert_close(result, exact, condition)


def test_qr_pinv_and_lstsq_are_those_of_lapack():
    for A, B in _problems((1, 1), (5, 5), (9, 4), (4, 1)):
        condition = float(torch.linalg.cond(A).max())
        result, Q, R = pinv(A)
        expected = torch.linalg.qr(A)
        _assert_close(Q, expected.Q, condition)
        _assert_close(R, expected.R, condition)
        assert torch.equal(R, R.triu())
        _assert_close(result, torch.linalg.pinv(A), condition)
        X, *reflectors, _ = lstsq(A, B)
        for part, exact in zip(reflectors, torch.geqrf(A), strict=True):
            _assert_close(part, exact, condition)
        _assert_close(X, torch.linalg.lstsq(A, B).solution, condition**2)


def test_pivots_are_compared_as_in_lapack():
    for dtype in DTYPES:
        A = torch.randn(500, 12, 12, dtype=dtype)
        assert torch.equal(inv(A)[2], torch.linalg.lu_factor_ex(A).pivots)


def test_info_is_the_first_zero_pivot_of_each_matrix():
    A = torch.eye(4).repeat(20, 1, 1)
    A[3, 2, 2] = A[3, 3, 3] = A[17, 0, 0] = 0
    expected = torch.linalg.lu_factor_ex(A)
    for _, LU, _, info in (inv(A), solve(A, A)):
        assert torch.equal(info, expected.info)
        assert torch.equal(LU, expected.LU)


def test_a_zero_column_is_passed_over():
    for dtype in DTYPES:
        A = _matrices((20,), 6, 3, dtype)
        A[4, :, 1] = 0
        _, Q, R = pinv(A)
        _assert_close(Q @ R, A)
        assert R[4, 1, 1] == 0
        _, reflectors, *_ = lstsq(A, A)
        _assert_close(reflectors[..., :3, :].triu(), R)


def test_columns_whose_squares_overflow_or_vanish():
    for dtype in DTYPES:
        numbers = torch.finfo(dtype)
        A = _matrices((3,), 7, 3, dtype)
        _, expected_Q, expected_R = pinv(A)
        for exponent in (-0.9, -0.6, 0.6, 0.9):
            scale = (numbers.max if exponent > 0 else 1 / numbers.tiny) ** exponent
            _, Q, R = pinv(A * scale)
            _assert_close(Q, expected_Q)
            _assert_close(R / scale, expected_R)


def test_a_matrix_has_the_same_bits_alone_and_in_any_batch():
    A, B = _matrices((130,), 7, 7, torch.float64), torch.randn(130, 7, 2, dtype=torch.float64)
    for kernel, arguments in ((solve, (A, B)), (inv, (A,)), (pinv, (A,)), (lstsq, (A, B))):
        together, alone = kernel(*arguments), kernel(*(t[77] for t in arguments))
        assert all(torch.equal(t[77], a) for t, a in zip(together, alone, strict=True))


def test_inputs_of_any_strides_and_conjugated():
    A = _matrices((4, 20), 5, 5, torch.complex128)
    for given in (A.mT, A.mH, A[::2, 3:], A.transpose(0, 1), A[0].expand(3, 20, 5, 5)):
        condition = float(torch.linalg.cond(given).max())
        _assert_close(inv(given)[0], torch.linalg.inv(given), condition)
        _assert_close(solve(given, given)[0], torch.eye(5).expand_as(given).to(given), condition)


def test_what_is_not_a_number_stays_so():
    A = torch.eye(4).repeat(20, 1, 1)
    A[5, 1, 2] = torch.nan
    for found in (inv(A)[0], pinv(A)[0]):
        assert found[5].isnan().any()
        torch.testing.assert_close(found[6:], A[6:])


def test_small_matrices_and_batches_that_fill_a_group_are_supported():
    for shape, is_supported in {
        (12, 12): True,
        (16, 32, 32): True,
        (16, 16): False,
        (15, 32, 32): False,
        (100, 33, 32): False,
        (0, 4, 4): False,
        (4, 0): False,
    }.items():
        assert inv.supports(torch.empty(shape, dtype=torch.float64)) is is_supported
    assert not solve.supports(torch.empty(3, 3), torch.empty(3, 0))
