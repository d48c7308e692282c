"""Determinants from LU factors, compiled and in operations of torch."""

import torch

from strategies.factors.determinant import determinant
from strategies.kernels.cpu import inspection


def test_loops_and_library_calls_find_the_same(monkeypatch):
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        for batch in ((), (7,), (2, 3), (0,)):
            LU, pivots, _ = torch.linalg.lu_factor_ex(torch.randn(*batch, 5, 5, dtype=dtype))
            with monkeypatch.context() as patch:
                patch.setattr(inspection.determinant, "supports", lambda *_: False)
                expected = determinant(LU, pivots)
            found = determinant(LU, pivots)
            tolerance = 100 * torch.finfo(dtype).eps
            torch.testing.assert_close(found.det, expected.det, rtol=tolerance, atol=tolerance)
            assert found.negligible == expected.negligible
            assert torch.equal(found.inverse_order, expected.inverse_order)


def test_negligible_pivots_are_those_of_the_matrix_that_has_most():
    A = torch.eye(4, dtype=torch.float64).repeat(3, 1, 1)
    A[1, 3, 3] = A[2, 2, 2] = 1e-9
    A[2, 3, 3] = 0
    LU, pivots, _ = torch.linalg.lu_factor_ex(A)
    assert determinant(LU, pivots).negligible == 2
    assert determinant(LU[:1], pivots[:1]).negligible == 0


def test_the_determinant_of_an_empty_matrix_is_one():
    LU, pivots, _ = torch.linalg.lu_factor_ex(torch.empty(2, 0, 0))
    found = determinant(LU, pivots)
    assert found.det.tolist() == [1, 1]
    assert found.negligible == 0
