"""Problems and their variants; derivatives along a direction against each other: they share no rule."""

import numpy as np
import pytest
import torch

from strategies import operations
from strategies.exact.balls import adjoint
from strategies.exact.problem import Perturbed, Problem, along
from strategies.oracle.draws import candidates
from strategies.oracle.truth import result_of

POWER = -53


def test_scalars_and_vectors_are_matrices():
    operands = Problem((np.eye(3), np.ones(3)), (np.array(2.0),), 3).operands
    assert [(held.nrows(), held.ncols()) for held in operands] == [(3, 3), (3, 1), (1, 1)]


def test_real_cotangents_join_a_complex_matrix():
    matrix, cotangent = Problem((1j * np.eye(2),), (np.array(2.0),), 2).operands
    assert type(matrix) is type(cotangent)


def test_profile_only_at_deficient_rank():
    assert Problem((np.eye(2),), (), 2).profile is None
    profile = Problem((np.diag([0.0, 1.0]),), (), 1).profile
    assert profile == ([1], [1])
    with pytest.raises(ValueError, match="rank 1, not 0"):
        _ = Problem((np.diag([0.0, 1.0]),), (), 0).profile


def moved(problem, **options):
    """What perturbing adds to the operands, over 2^POWER, and the operands themselves."""
    before = problem.operands
    after = Perturbed(**vars(problem), power=POWER, **options).operands
    return [
        np.array([[complex(x) for x in row] for row in ((b - a) * 2.0**-POWER).tolist()])
        for a, b in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("axis", [0, 1, None])
def test_an_entry_of_a_moves_by_the_largest_along_an_axis(axis):
    A = np.array([[1.0, 3e-200], [8.0, 1e-200]])
    (change,) = moved(Problem((A,), (), 2), axis=axis)
    largest = np.maximum.reduce(abs(A), axis=axis, keepdims=True)
    assert abs(change) == pytest.approx(np.broadcast_to(largest, A.shape), rel=1e-12)


def test_a_cotangent_moves_as_a_does():
    G = np.array([[1.0, 1e-9], [0.0, 0.0]])
    *_, change = moved(Problem((np.eye(1),), (G,), 1))
    assert abs(change) == pytest.approx(abs(G[[0, 0]]), rel=1e-12)
    *_, change = moved(Problem((np.eye(1),), (np.array(3.0),), 1))
    assert abs(change) == pytest.approx(3.0)


def test_seeds_differ_and_repeat():
    problem = Problem((np.ones((6, 6)) + np.eye(6),), (), 6)
    first, again, other = (moved(problem, seed=seed)[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("shape", [(5, 4), (4, 6)])
def test_a_deficient_rank_stays(shape):
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-3, 4, (side, 2)) for side in shape)
    problem = Problem(((left @ right.T).astype(float),), (), 2)
    (matrix,) = Perturbed(**vars(problem), power=-20).operands
    (change,) = moved(problem)
    assert 0 < abs(change).max() < 100 * abs(problem.matrix).max()
    # All minors of order 3 vanish.
    table = matrix.tolist()
    minor = type(matrix)(3, 3, [table[i][j] for i in range(3) for j in range(3)])
    assert minor.det().contains(0)
    assert float(minor.det().rad()) < 1e-100


def test_nothing_moves_at_rank_zero():
    (change,) = moved(Problem((np.zeros((3, 2)),), (), 0))
    assert not change.any()


def problem_of(case, tangents):
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
    case, record = next(candidates(operation, kind, 0, 5), None), operations.get(operation)
    if case is None or (kind == "deficient" and record.pivoted):
        pytest.skip("has no result there")
    keeps_rank = record.truncates
    at = problem_of(case, case.tangents)
    arity = len(case.inputs)
    cotangents, tangents = at.operands[arity:-arity], at.operands[-arity:]
    moved = along(result_of(record), keeps_rank=keeps_rank)(at)
    pulled = record.exact(problem_of(case, ()))
    assert (paired(cotangents[-len(moved) :], moved) - paired(pulled, tangents)).contains(0)


@pytest.mark.parametrize("kind", ["plain", "hard", "complex"])
@pytest.mark.parametrize("operation", operations.names())
def test_the_hessian_is_symmetric(operation, kind):
    case, record = next(candidates(operation, kind, 0, 5)), operations.get(operation)
    rolled = torch.from_numpy(np.roll(case.tangents[0], 1, axis=0) + 1)
    other = [record.domain.part(rolled).numpy(), *case.tangents[1:]]
    arity = len(case.inputs)
    second = along(record.exact, keeps_rank=False)
    here, there = problem_of(case, case.tangents), problem_of(case, other)
    one = paired(second(here), there.operands[-arity:])
    assert (one - paired(second(there), here.operands[-arity:])).contains(0)
    assert float(one.rad()) < 1e-40 * max(1.0, abs(float(one.mid())))


def test_a_tangent_that_leaves_the_rank_is_replaced():
    A = np.array([[1.0, 2.0], [2.0, 4.0]])
    case = Problem((A,), (np.array([[0.0, 0.0], [0.0, 1.0]]),), 1)
    moved = along(lambda problem: problem.operands[:1], keeps_rank=True)(case)[0]
    assert moved.det() == 0
