"""Substitution that is differentiated as a solve with a full matrix."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.functional import hessian
from torch.func import jacfwd, jacrev

from strategies import linalg
from strategies.autograd.full_triangular import FullTriangular
from strategies.factors.pseudo_inverse import Structure


def matrices(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    F, B = torch.randn(2, 3, 3, dtype=dtype, generator=generator)
    return F.tril(-1) + torch.diag(2 + F.diagonal().real.abs()), B[:, :2]


def whole(F, B):
    return torch.linalg.solve(F @ F.mH, B)


def by_triangles(F, B):
    inverse = FullTriangular(F, Structure.LOWER)
    return inverse.solve_adjoint(inverse.solve(B))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("differentiate", [jacrev, jacfwd])
def test_derivatives_to_the_third_order_are_those_of_a_full_matrix(dtype, differentiate):
    F, B = matrices(dtype)
    direction = torch.randn(3, 3, dtype=dtype, generator=torch.Generator().manual_seed(1))

    def along(function, differentiate):
        def value(t):
            return torch.view_as_real(function(F + t * direction, B) + 0j)

        third = differentiate(differentiate(differentiate(value)))
        return third(torch.zeros((), dtype=torch.float64))

    torch.testing.assert_close(along(by_triangles, differentiate), along(whole, jacrev))


def test_finite_differences_of_one_triangle_agree():
    F, B = (each.requires_grad_() for each in matrices())
    assert gradcheck(lambda F, B: by_triangles(F.tril(), B), (F, B), check_forward_ad=True)
    assert gradgradcheck(lambda F, B: by_triangles(F.tril(), B), (F, B), check_fwd_over_rev=True)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["auto", "triangular_solve"])
@pytest.mark.parametrize(
    ("function", "due"),
    [
        (linalg.cholesky_inverse, torch.linalg.inv),
        (
            lambda L, **options: linalg.cholesky_solve(matrices()[1], L, **options),
            lambda A: torch.linalg.solve(A, matrices()[1]),
        ),
    ],
    ids=["cholesky_inverse", "cholesky_solve"],
)
def test_operations_by_a_cholesky_factor_have_such_derivatives(function, due, strategy, vectorize):
    L, _ = matrices()
    found = hessian(lambda L: function(L, strategy=strategy).sin().sum(), L, vectorize=vectorize)
    torch.testing.assert_close(found, hessian(lambda L: due(L @ L.mH).sin().sum(), L))
