"""NaN and infinity pass through LU as in PyTorch, and stay in their matrix."""

import pytest
import torch

from strategies.linalg import lu_factor_ex

STRATEGIES = ["triangular_solve", "svd_truncated_pinv", "blocked_lu", "batch_last", "fused"]
INF, NAN = float("inf"), float("nan")
MATRICES = [
    [[INF], [1.0], [2.0]],
    [[1.0, 2.0], [NAN, 3.0]],
    [[1.0, INF, 2.0], [3.0, 4.0, 5.0]],
    [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, NAN]],
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_factors_are_those_of_torch_and_the_gradient_is_nan(strategy):
    for rows in MATRICES:
        A = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        LU, pivots, info = lu_factor_ex(A, strategy=strategy)
        expected = torch.linalg.lu_factor_ex(A.detach())
        torch.testing.assert_close((LU, pivots, info), tuple(expected), equal_nan=True)
        LU.sum().backward()
        assert A.grad.isnan().all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nan_stays_in_its_matrix(strategy):
    A = torch.eye(3).repeat(3, 1, 1)
    A[1, 2, 0] = NAN
    A[2] = 1  # of rank one
    A.requires_grad_()
    lu_factor_ex(A, strategy=strategy).LU.sum().backward()
    assert A.grad.isnan().flatten(1).any(-1).tolist() == [False, True, False]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nan_beside_the_pivots_of_a_wide_matrix_is_no_error(strategy):
    A = torch.tensor([[2.0, 3.0, NAN]], requires_grad=True)
    lu_factor_ex(A, strategy=strategy).LU[..., :2].sum().backward()
    assert A.grad.tolist() == [[1.0, 1.0, 0.0]]
