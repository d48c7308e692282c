"""Batches that PyTorch 2.13 factors wrongly, or never, and factors with which it solves wrongly."""

import pytest
import torch

from strategies.factors.elimination import lu_solve
from tests.process import run_python

PROGRAM = """
import torch
from strategies.factors.elimination import lu_factor_ex
torch.set_num_threads(2)
for shape in ((2, 300, 300), (3, 2, 200, 200), (2, 100, 300), (2, 300, 140), (2, 32, 512)):
    for dtype in (torch.float32, torch.complex128):
        A = torch.randn(shape, dtype=dtype)
        LU, pivots, info = lu_factor_ex(A)
        P, L, U = torch.lu_unpack(LU, pivots)
        torch.testing.assert_close(P @ L @ U, A, rtol=1e-4, atol=1e-4)
        assert info.shape == shape[:-2]
"""


@pytest.mark.timeout(200)
def test_large_matrices_of_a_batch_are_factored_right():
    run_python(PROGRAM, timeout=150)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("batch", [(2, 1), (3, 1, 1), (1, 2), (2, 1, 4)])
def test_a_batch_dimension_of_one_matrix_may_have_any_stride(batch, adjoint):
    A = torch.randn(*batch, 3, 3, dtype=torch.float64)
    B = torch.randn(*(5 if size == 1 else size for size in batch), 3, 2, dtype=torch.float64)
    LU, pivots = torch.linalg.lu_factor(A.flatten(0, -3))
    for factors in (LU, LU.contiguous()):
        # As `unsqueeze` makes the strides, and as `transpose` does.
        shaped, swaps = factors.view(*batch, 3, 3), pivots.view(*batch, 3)
        turned = swaps.transpose(0, 1).contiguous().transpose(0, 1)
        for order in (swaps, turned):
            X = lu_solve(shaped, order, B, adjoint=adjoint)
            torch.testing.assert_close((A.mH if adjoint else A) @ X, B)


@pytest.mark.parametrize("of_pivots", [None, 0, 1])
@pytest.mark.parametrize("of_LU", [None, 0, 1, 2])
def test_vmap_may_map_any_dimension_of_factors_and_pivots(of_LU, of_pivots):
    A, B = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    LU, pivots = torch.linalg.lu_factor(A)

    def repeated(each, dim):
        return each if dim is None else torch.stack([each] * 9, dim)

    mapped = torch.vmap(lu_solve, (of_LU, of_pivots, 0))
    X = mapped(repeated(LU, of_LU), repeated(pivots, of_pivots), repeated(B, 0))
    torch.testing.assert_close(A @ X, repeated(B, 0))
