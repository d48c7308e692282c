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


DERIVATIVES = """
import torch
from strategies import linalg
torch.set_num_threads(2)
A, W = torch.randn(2, 180, 180, dtype=torch.float64), torch.randn(180, 180, dtype=torch.float64)
Q, values = torch.linalg.qr(A)[0], torch.linspace(0.9, 1.1, 180, dtype=torch.float64)
values[-1] = 0
functions = (
    (lambda A: linalg.eig(A, strategy="triangular_solve")[0].abs() * torch.arange(180), A),
    (lambda A: linalg.qr(A[..., :150], "complete").Q * W, A),
    (linalg.det, Q * values @ Q.flip(0)),
)

def second(function, A):
    A = A.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(A).sum(), A, create_graph=True)
    return gradient.detach(), torch.autograd.grad((gradient * W).sum(), A)[0]

def tangent(function, A):
    return torch.func.jvp(function, (A,), (W.expand_as(A),))[1:]

for function, matrices in functions:
    for derivative in (second, tangent):
        samples = [derivative(function, each) for each in matrices.split(1)]
        for found, own in zip(derivative(function, matrices), zip(*samples)):
            own = torch.cat(own)
            torch.testing.assert_close(found, own, rtol=0, atol=1e-7 * own.abs().max().item())
"""


@pytest.mark.timeout(200)
@pytest.mark.parametrize("program", [PROGRAM, DERIVATIVES], ids=["factors", "derivatives"])
def test_large_matrices_of_a_batch_are_factored_right(program):
    assert not run_python(program, timeout=150).stdout


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
