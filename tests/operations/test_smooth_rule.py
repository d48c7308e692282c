"""Derivatives of LU and Cholesky factors of the second and third order, in all nestings of modes."""

import itertools

import pytest
import torch

from strategies import linalg
from strategies.oracle import grader
from strategies.oracle.asking import CORE

REVERSE, FORWARD = "reverse", "forward"

FUNCTIONS = {
    "cholesky": linalg.cholesky,
    "lu_factor": lambda A: linalg.lu_factor(A).LU,
    "lu": lambda A: torch.cat([each.flatten() for each in linalg.lu(A)[1:]]),
}


def along(kind, function, direction):
    """The derivative of a real function in a direction, by one mode."""
    if kind == FORWARD:
        return lambda A: torch.func.jvp(function, (A,), (direction,))[1]
    return lambda A: (torch.func.grad(function)(A) * direction).sum()


def nested(kinds, function, directions):
    for kind, direction in zip(kinds, directions, strict=True):
        function = along(kind, function, direction)
    return function


def loss_of(name, shape):
    """A real function through the factors, and where it is differentiated."""
    generator = torch.Generator().manual_seed(1)
    A, *directions = torch.randn(4, *shape, generator=generator, dtype=torch.float64)
    if name == "cholesky":
        A, directions = A @ A.mT + torch.eye(len(A)), [each + each.mT for each in directions]
    function = FUNCTIONS[name]
    weights = torch.randn(function(A).shape, generator=generator, dtype=torch.float64)
    return lambda matrix: (weights * function(matrix)).sum(), A, directions


@pytest.mark.parametrize("kinds", [*itertools.product([REVERSE, FORWARD], repeat=3)])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("cholesky", (3, 3)), ("lu_factor", (3, 3)), ("lu", (4, 3)), ("lu_factor", (3, 4))],
)
def test_third_derivatives_are_those_by_differences(name, shape, kinds):
    loss, A, (*directions, last) = loss_of(name, shape)
    found = nested(kinds, loss, [*directions, last])(A)
    second = nested([REVERSE, REVERSE], loss, directions)
    step = 1e-4
    expected = (second(A + step * last) - second(A - step * last)) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5 * float(expected.abs() + 1))


@pytest.mark.parametrize("kinds", [*itertools.product([REVERSE, FORWARD], repeat=2)])
@pytest.mark.parametrize("case", ["cholesky/complex/6", "lu_factor/complex/6", "lu/hard/0"])
def test_second_derivatives_of_ill_conditioned_matrices_keep_their_digits(case, kinds):
    case = next(each for each in grader.read(CORE)[1] if each["id"] == case)
    (A,), cotangents, (tangent,) = (
        [torch.from_numpy(grader.array(each, case["dtype"])) for each in case[name]]
        for name in ("inputs", "cotangents", "tangents")
    )
    functions = {**FUNCTIONS, "lu": lambda A: linalg.lu(A)[1:]}

    def loss(matrix):
        outputs = functions[case["operation"]](matrix)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return sum((G.conj() * X).real.sum() for G, X in zip(cotangents, outputs, strict=True))

    def along_real(kind, function):
        if kind == FORWARD:
            return lambda A: torch.func.jvp(function, (A,), (tangent,))[1]
        return lambda A: (torch.func.grad(function)(A).conj() * tangent).real.sum()

    for kind in kinds:
        loss = along_real(kind, loss)
    exact = torch.from_numpy(
        grader.array(case["results"]["hvp"][0], "complex128" if A.is_complex() else "float64")
    )
    expected = (exact.conj() * tangent).real.sum()
    size = exact.abs().square().sum().sqrt() * tangent.abs().square().sum().sqrt()
    assert abs(loss(A) - expected) <= 1e-13 * size
