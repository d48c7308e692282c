"""LU factors of deficient rank by kernels, compared with the operations of torch."""

import functools
import itertools

import pytest
import torch

from strategies import linalg
from strategies.factors.lu_rank import UNDECIDED, canonical
from strategies.formulas import lu as formula
from strategies.kernels.cpu.library import DTYPES
from tests.kernels.cpu.by_plan import plan_of

SHAPES = (5, 5), (30, 30), (12, 5), (5, 12), (60, 40)
each_shape = pytest.mark.parametrize(("m", "n"), SHAPES)


def products(m, n, dtype):
    """Of each rank up to the full one, of random numbers and of small integers."""
    for rank in (0, 1, min(m, n) // 2, min(m, n) - 1, min(m, n)):
        left, right = torch.randn(m, rank, dtype=dtype), torch.randn(rank, n, dtype=dtype)
        yield left @ right
        yield (left.real.mul(2).round() @ right.real.mul(2).round()).to(dtype)


def others(m, n, dtype):
    """With a row or a column of zeros, and with columns that depend on those before."""
    A = torch.randn(3, m, n, dtype=dtype)
    A[0, m // 2] = 0
    A[1, :, n // 2] = 0
    A[2, :, 1] = A[2, :, 0]
    yield from A


@each_shape
def test_rank_factors_and_report_are_those_of_the_operations_of_torch(m, n):
    decided = 0
    for dtype in DTYPES:
        for A in itertools.chain(products(m, n, dtype), others(m, n, dtype)):
            LU, pivots, info = torch.linalg.lu_factor_ex(A)
            due = canonical(LU, pivots)
            found = plan_of(("factors", "lu_factor_ex"), A).forward((A,))
            assert (found is None) == (int(due.rank) == UNDECIDED)
            if found is not None:
                decided += 1
                (factors, *rest), _ = found
                assert all(map(torch.equal, rest, (due.pivots, info)))
                assert torch.equal(factors == 0, due.LU == 0)
                tolerance = 1e3 * torch.finfo(dtype).eps * float(due.LU.abs().max())
                torch.testing.assert_close(factors, due.LU, rtol=0, atol=tolerance)
    assert decided > 30


def packed(A, name, strategy):
    if name == "lu":
        return formula.packed(*linalg.lu(A, strategy=strategy)[1:])
    return linalg.lu_factor_ex(A, strategy=strategy).LU


def derivatives(function, A):
    """The gradient for A as the cotangent, and its derivative along A."""
    return torch.func.jvp(lambda A: torch.func.vjp(function, A)[1](A)[0], (A,), (A,))


@each_shape
@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("name", ["lu", "lu_factor_ex"])
def test_derivatives_are_those_of_other_strategies(name, count, m, n):
    for dtype, rank in itertools.product((torch.float64, torch.complex128), (0, 1, min(m, n) - 1)):
        A = torch.randn(count, m, n, dtype=dtype)
        A[0] = A[0, :, :rank] @ torch.randn(rank, n, dtype=dtype)
        found, due = (
            derivatives(functools.partial(packed, name=name, strategy=strategy), A)
            for strategy in ("fused", "triangular_solve")
        )
        atol = 1e-8 * float(due[1].abs().max())
        torch.testing.assert_close(found, due, rtol=1e-8, atol=atol)
        leaf = A.clone().requires_grad_()
        (eager,) = torch.autograd.grad(packed(leaf, name, "fused"), leaf, A)
        torch.testing.assert_close(eager, due[0], rtol=1e-8, atol=atol)
