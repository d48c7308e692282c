"""Derivatives along a direction, against each other: they share no rule for what they are."""

import numpy as np
import pytest
from flint import ctx

from strategies import operations
from strategies.exact.balls import adjoint
from strategies.exact.directed import along
from strategies.exact.problem import Problem
from strategies.oracle.draws import draw
from strategies.oracle.truth import result_of


@pytest.fixture(autouse=True)
def _exactly():
    with ctx.workprec(512):
        yield


def drawn(operation, kind):
    """The first case that has only one matrix and a gradient."""
    found = (draw(operation, kind, 0, (5, attempt)) for attempt in range(20))
    return next((each for each in found if each is not None), None)


def problem(case, tangents):
    cotangents = case.cotangents
    if case.operation == "slogdet" and len(cotangents) == 1:
        cotangents = np.zeros(()), *cotangents
    order = None if case.orders is None else case.orders[0]
    return Problem(case.inputs, (*cotangents, *tangents), case.ranks[0], order)


def paired(one, other):
    """Re ⟨one, other⟩."""
    total = sum((adjoint(a) * b).trace() for a, b in zip(one, other, strict=True))
    return total.real


@pytest.mark.parametrize("kind", ["plain", "hard", "complex", "deficient"])
@pytest.mark.parametrize("operation", operations.names())
def test_the_jvp_is_the_adjoint_of_the_vjp(operation, kind):
    case, record = drawn(operation, kind), operations.get(operation)
    if case is None or (kind == "deficient" and record.pivoted):
        pytest.skip("has no result there")
    keeps_rank = record.truncates
    at = problem(case, case.tangents)
    arity = len(case.inputs)
    cotangents, tangents = at.operands[arity:-arity], at.operands[-arity:]
    moved = along(result_of(record), keeps_rank=keeps_rank)(at)
    pulled = record.exact(problem(case, ()))
    assert (paired(cotangents[-len(moved) :], moved) - paired(pulled, tangents)).contains(0)


@pytest.mark.parametrize("kind", ["plain", "hard", "complex"])
@pytest.mark.parametrize("operation", operations.names())
def test_the_hessian_is_symmetric(operation, kind):
    case, record = drawn(operation, kind), operations.get(operation)
    other = [record.domain.part(_rolled(case.tangents[0])).numpy(), *case.tangents[1:]]
    arity = len(case.inputs)
    second = along(record.exact, keeps_rank=False)
    here, there = problem(case, case.tangents), problem(case, other)
    one = paired(second(here), there.operands[-arity:])
    assert (one - paired(second(there), here.operands[-arity:])).contains(0)
    assert float(one.rad()) < 1e-40 * max(1.0, abs(float(one.mid())))


def _rolled(array):
    import torch

    return torch.from_numpy(np.roll(array, 1, axis=0) + 1)


def test_a_tangent_that_leaves_the_rank_is_replaced():
    A = np.array([[1.0, 2.0], [2.0, 4.0]])
    case = Problem((A,), (np.array([[0.0, 0.0], [0.0, 1.0]]),), 1)
    moved = along(lambda problem: problem.operands[:1], keeps_rank=True)(case)[0]
    assert moved.det() == 0
