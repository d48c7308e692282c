"""Derivatives of LU and Cholesky factors of the second and third order, in all nestings of modes."""

import pytest
import torch
from comparison import drawn
from fuzz.derivative import derivative, numbers_of, over_numbers, words
from torch.autograd.functional import hessian

from strategies import linalg
from strategies.oracle import grader
from strategies.oracle.asking import CORE

FUNCTIONS = {
    "cholesky": lambda A: (linalg.cholesky(A),),
    "lu_factor": lambda A: (linalg.lu_factor(A).LU,),
    "lu": lambda A: linalg.lu(A)[1:],
}


def derived(name, A, cotangents, word, directions):
    """The derivative of the pairing with cotangents, by a composition of modes along directions."""

    def loss(A):
        pairs = zip(cotangents, FUNCTIONS[name](A), strict=True)
        return sum((G.conj() * X).real.sum() for G, X in pairs)

    of_numbers, x = over_numbers(loss, [A])
    return derivative(of_numbers, word, x, directions=[*map(numbers_of, directions)])


@pytest.mark.parametrize("word", words(3))
@pytest.mark.parametrize(
    ("name", "shape"), [("lu", (4, 3)), ("lu_factor", (3, 4))], ids=["tall", "wide"]
)
def test_third_derivatives_are_those_by_differences(name, shape, word):
    A, *directions = drawn(4, *shape, seed=1)
    cotangents = [drawn(*each.shape, seed=2) for each in FUNCTIONS[name](A)]
    found = derived(name, A, cotangents, word, directions)
    step = 1e-4
    after, before = (
        derived(name, A + signed * directions[0], cotangents, "rr", directions[1:])
        for signed in (step, -step)
    )
    expected = (after - before) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * float(expected.abs() + 1))


@pytest.mark.parametrize("word", words(2))
@pytest.mark.parametrize("case", ["cholesky/complex/6", "lu_factor/complex/6", "lu/hard/0"])
def test_second_derivatives_of_ill_conditioned_matrices_keep_their_digits(case, word):
    case = next(each for each in grader.read(CORE)[1] if each["id"] == case)
    (A,), cotangents, (tangent,) = (
        [torch.from_numpy(grader.array(each, case["dtype"])) for each in case[name]]
        for name in ("inputs", "cotangents", "tangents")
    )
    found = derived(case["operation"], A, cotangents, word, [tangent, tangent])
    exact = torch.from_numpy(
        grader.array(case["results"]["hvp"][0], "complex128" if A.is_complex() else "float64")
    )
    expected = (exact.conj() * tangent).real.sum()
    assert abs(found - expected) <= 1e-13 * exact.norm() * tangent.norm()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_hessian_by_many_cotangents_at_once_stays_in_the_graph(name):
    A, G = drawn(3, 3) + 4 * torch.eye(3), drawn(3, 3, seed=1).requires_grad_()

    def derivatives(vectorize):
        def loss(A):
            return sum((G * X).sin().sum() for X in FUNCTIONS[name](A))

        second = hessian(loss, A, create_graph=True, vectorize=vectorize)
        return second, *torch.autograd.grad(second.square().sum(), G)

    torch.testing.assert_close(derivatives(vectorize=True), derivatives(vectorize=False))
