"""`batch_last` computes by packs of matrices, and as `triangular_solve` where there are none."""

import functools

import pytest
import torch
from comparison import drawn, with_gradients
from torch.utils._pytree import tree_leaves

from strategies import linalg


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
@pytest.mark.parametrize(
    ("name", "m", "n"),
    [
        *((name, 5, 5) for name in ("inv", "det", "slogdet", "lu_factor", "solve")),
        *((name, *shape) for name in ("lu_factor", "pinv", "lstsq") for shape in ((7, 3), (3, 7))),
        ("qr", 6, 4),
    ],
)
def test_gradients_of_many_matrices_are_those_of_triangular_solve(name, m, n, dtype):
    A = (drawn(130, m, n, dtype=dtype) + 8 * torch.eye(m, n, dtype=dtype)).requires_grad_()
    B = drawn(130, m, 2, dtype=dtype).requires_grad_()
    inputs = (A, B) if name in ("solve", "lstsq") else (A,)

    def gradients(strategy):
        function = functools.partial(getattr(linalg, name), strategy=strategy)
        return with_gradients(function, *inputs)[-len(inputs) :]

    found, due = map(gradients, ("batch_last", "triangular_solve"))
    for gradient, expected in zip(found, due, strict=True):
        error = torch.linalg.vector_norm(gradient - expected)
        assert error <= 300 * torch.finfo(dtype).eps * torch.linalg.vector_norm(expected)


@pytest.mark.parametrize("name", ["inv", "lu_factor", "cholesky"])
def test_a_matrix_has_the_same_gradient_alone_and_in_any_batch(name):
    A = drawn(40, 6, 6, dtype=torch.float32)
    A = A @ A.mT + torch.eye(6)
    function = getattr(linalg, name)

    def gradient(A):
        A = A.detach().requires_grad_()
        result, *_ = tree_leaves(function(A, strategy="batch_last"))
        return torch.autograd.grad(result.square().sum(), A)[0]

    assert torch.equal(gradient(A)[7], gradient(A[7]))
