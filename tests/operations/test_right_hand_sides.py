"""Batches of right-hand sides beside batches of matrices."""

import pytest
import torch

from strategies import linalg
from strategies.operations.right_hand_sides import alike

SHAPES = [
    ((4, 4), (8, 4, 2)),
    ((1, 4, 4), (8, 4, 2)),
    ((1, 1, 4, 4), (8, 4, 2)),
    ((1, 4, 4), (3, 8, 4, 2)),
    ((2, 1, 4, 4), (1, 3, 4, 2)),
    ((3, 4, 4), (4, 2)),
    ((1, 4, 4), (0, 4, 2)),
]


@pytest.mark.parametrize(("of_matrix", "of_rhs"), SHAPES)
def test_solutions_are_broadcast_as_those_of_torch(of_matrix, of_rhs):
    A = torch.randn(of_matrix, dtype=torch.float64) + 4 * torch.eye(4)
    B = torch.randn(of_rhs, dtype=torch.float64)
    expected = torch.linalg.solve(A, B)
    LU, pivots = torch.linalg.lu_factor(A)
    torch.testing.assert_close(linalg.solve(A, B), expected)
    torch.testing.assert_close(linalg.lu_solve(LU, pivots, B, strategy="fused"), expected)


def test_one_matrix_has_all_columns_at_once():
    for batch in ((), (1,)):
        A, columns, restored = alike(torch.eye(4).expand(*batch, 4, 4), torch.ones(8, 4, 2))
        assert (A.shape, columns.shape) == ((4, 4), (4, 16))
        assert restored(columns).shape == (8, 4, 2)
