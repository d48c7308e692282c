"""Derivatives of all orders of factors that a quadratic equation determines."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.functional import hessian
from torch.func import jacfwd, jacrev

from strategies.autograd.quadratic import pull, push
from strategies.formulas import cholesky, lu
from strategies.formulas.domains import LOWER_TRIANGULAR

EQUATIONS = {
    "cholesky": (cholesky.Equation(), LOWER_TRIANGULAR.part, (3, 3)),
    "lu": (lu.Equation(), lambda matrix: matrix, (3, 3)),
    "tall lu": (lu.Equation(), lambda matrix: matrix, (4, 2)),
    "wide lu": (lu.Equation(), lambda matrix: matrix, (2, 4)),
}


def factors(shape, dtype):
    Y, other = torch.randn(2, 2, *shape, dtype=dtype)
    return (Y + 3 * torch.eye(*shape, dtype=dtype)).requires_grad_(), other.requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("map_", [push, pull])
@pytest.mark.parametrize("name", EQUATIONS)
def test_derivatives_of_a_map_are_those_of_finite_differences(name, map_, dtype):
    equation, part, shape = EQUATIONS[name]

    def function(Y, other):
        return map_(equation, part(Y), other)

    inputs = factors(shape, dtype)
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_map_is_the_adjoint_of_the_other(name):
    equation, part, shape = EQUATIONS[name]
    Y, tangent = (each.detach() for each in factors(shape, torch.complex128))
    cotangent = torch.randn(tangent.shape, dtype=tangent.dtype)
    one = (push(equation, part(Y), tangent).conj() * cotangent).sum().real
    other = (tangent.conj() * pull(equation, part(Y), cotangent)).sum().real
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", EQUATIONS)
def test_modes_nest(name):
    equation, part, shape = EQUATIONS[name]
    Y, other = (each.detach()[0] for each in factors(shape, torch.float64))

    def function(Y):
        return pull(equation, part(Y), other)

    expected = jacrev(jacrev(function))(Y)
    for nested in (jacfwd(jacrev(function)), jacrev(jacfwd(function)), jacfwd(jacfwd(function))):
        torch.testing.assert_close(nested(Y), expected)
    torch.testing.assert_close(torch.func.vmap(jacrev(jacfwd(function)))(Y[None])[0], expected)


@pytest.mark.parametrize("map_", [push, pull])
def test_a_map_of_several_cotangents_at_once_stays_in_the_graph(map_):
    equation, part, shape = EQUATIONS["cholesky"]
    Y, other = (each.detach()[0] for each in factors(shape, torch.float64))
    other.requires_grad_()

    def of_second_order(vectorize):
        def loss(Y):
            return map_(equation, part(Y), other).sin().sum()

        return hessian(loss, Y, create_graph=True, vectorize=vectorize)

    together, one_by_one = (of_second_order(vectorize) for vectorize in (True, False))
    torch.testing.assert_close(together, one_by_one)
    of_third_order = [
        torch.autograd.grad(each.square().sum(), other)[0] for each in (together, one_by_one)
    ]
    torch.testing.assert_close(*of_third_order)
