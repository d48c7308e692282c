"""Inverses and solutions with matrices of few rows, beside PyTorch's in double precision."""

import pytest
import torch

from strategies.kernels.cpu.library import DTYPES
from strategies.kernels.cpu.plans import plan
from strategies.linalg import inv, solve
from tests.kernels.cpu.few_rows import differences, drawn, pivoted

ROWS = pytest.mark.parametrize("n", range(1, 10))


# One by one, and in packs, the last of which is not full.
COUNTS = pytest.mark.parametrize("count", [3, 41])


@COUNTS
@pytest.mark.parametrize("dtype", DTYPES)
@ROWS
def test_an_inverse_and_its_gradient(n, dtype, count):
    A = pivoted(n, dtype, count)
    found = differences(lambda A: inv(A, strategy="fused"), torch.linalg.inv, A)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@COUNTS
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@ROWS
def test_a_solution_and_its_gradients(n, dtype, k, count):
    B = drawn(dtype, count, n, k)
    ours = lambda A, B: solve(A, B, strategy="fused")  # noqa: E731
    found = differences(ours, torch.linalg.solve, pivoted(n, dtype, count), B)
    assert max(found) < 1e4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@ROWS
def test_a_matrix_without_a_pivot_is_refused_as_by_pytorch(n, dtype):
    A = torch.eye(n, dtype=dtype).expand(3, n, n).clone()
    A[1, -1] = 0
    with pytest.raises(torch.linalg.LinAlgError, match=r"Batch element 1"):
        inv(A, strategy="fused")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [7, 8])
def test_a_matrix_that_grows_in_the_elimination_is_declined(n, dtype):
    """Wilkinson's, whose last column doubles at every step, from far down the batch."""
    A = torch.eye(n, dtype=dtype).expand(5, n, n).clone()
    B = torch.ones(5, n, 1, dtype=dtype)
    for operation, inputs in (("inv", (A,)), ("solve", (A, B))):
        layouts = [(tuple(each.shape), each.stride()) for each in inputs]
        found = plan("factors", operation, dtype, *layouts)
        A[3] = torch.eye(n, dtype=dtype)
        assert found.forward(inputs) is not None
        A[3] += torch.full((n, n), -1.0, dtype=dtype).tril(-1)
        A[3, :, -1] = 1
        assert (found.forward(inputs) is None) == (n == 8)
