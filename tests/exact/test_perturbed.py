"""Perturbations by one rounding, exact and of the same rank."""

import numpy as np
import pytest
from flint import ctx

from strategies.exact.perturbed import Perturbed
from strategies.exact.problem import Problem

POWER = -53


@pytest.fixture(autouse=True)
def _exactly():
    with ctx.workprec(512):
        yield


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
