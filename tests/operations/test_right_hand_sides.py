"""Batches of right-hand sides beside batches of matrices."""

import functools
import itertools

import pytest
import torch
from comparison import drawn, of_torch, require_alike

from strategies import linalg
from strategies.operations.right_hand_sides import folded

COLUMNS = [
    ((3, 3), (3, 2)),
    ((3, 3), (8, 3, 2)),
    ((8, 3, 3), (3, 2)),
    ((1, 3, 3), (8, 3, 2)),
    ((1, 1, 3, 3), (8, 3, 2)),
    ((1, 3, 3), (4, 8, 3, 2)),
    ((4, 1, 3, 3), (5, 3, 2)),
    ((2, 1, 3, 3), (1, 5, 3, 2)),
    ((4, 3, 3), (4, 3, 2)),
    ((2, 3, 3), (2, 3, 9)),
    ((3, 7, 7), (3, 7, 20)),
    ((0, 3, 3), (3, 2)),
    ((1, 3, 3), (0, 3, 2)),
    ((0, 0), (4, 0, 2)),
    ((0, 0), (2, 3, 0, 0)),
]
VECTORS = [((3, 3), (3,)), ((4, 3, 3), (3,)), ((4, 3, 3), (4, 3))]
CALLS = {
    "solve": lambda solve, A, B: solve(A, B),
    "solve_ex": lambda solve, A, B: solve(A, B),
    "solve from the right": lambda solve, A, B: solve(A, B.mT, left=False),
    "solve_ex from the right": lambda solve, A, B: solve(A, B.mT, left=False),
    "lu_solve": lambda solve, A, B: solve(*torch.linalg.lu_factor(A), B),
    "cholesky_solve": lambda solve, A, B: solve(B, A.tril()),
}


@pytest.mark.parametrize("strategy", ["auto", "triangular_solve", "fused"])
@pytest.mark.parametrize(
    ("name", "shapes"),
    [*itertools.product(CALLS, COLUMNS), *itertools.product(["solve", "solve_ex"], VECTORS)],
)
def test_solutions_and_gradients_are_broadcast_as_those_of_torch(name, shapes, strategy):
    A, B = (drawn(*shape, seed=i) for i, shape in enumerate(shapes))
    A = A + 4 * torch.eye(A.shape[-1])
    function, *_ = name.split()
    ours = functools.partial(getattr(linalg, function), strategy=strategy)
    calls = (functools.partial(CALLS[name], each) for each in (ours, of_torch(function)))
    require_alike(*calls, A.requires_grad_(), B.requires_grad_())


def test_a_right_hand_side_of_many_matrices_is_copied_where_no_one_stride_is_theirs():
    A, B = torch.ones(2, 3, 4, 4), torch.ones(2, 1, 4, 5)
    columns, _ = folded(A, B)
    assert columns.flatten(0, 1).data_ptr() == columns.data_ptr()
