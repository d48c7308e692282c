"""`batch_last` computes by packs of matrices, and as `triangular_solve` where there are none."""

import pytest
import torch

from strategies import linalg


def drawn(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def gradients(function, strategy, *inputs):
    inputs = [each.detach().requires_grad_() for each in inputs]
    result = function(*inputs, strategy=strategy)
    result = result if isinstance(result, torch.Tensor) else result[0]
    weights = torch.linspace(-1, 2, result.numel(), dtype=result.real.dtype).view(result.shape)
    return torch.autograd.grad((result * weights).real.sum(), inputs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
@pytest.mark.parametrize("batch", [(), (3,), (130,), (2, 3)])
@pytest.mark.parametrize(
    ("name", "m", "n"),
    [
        ("inv", 5, 5),
        ("det", 5, 5),
        ("slogdet", 5, 5),
        ("lu_factor", 5, 5),
        ("lu_factor", 7, 3),
        ("lu_factor", 3, 7),
        ("pinv", 7, 3),
        ("pinv", 3, 7),
        ("qr", 6, 4),
        ("solve", 5, 5),
        ("lstsq", 7, 3),
        ("lstsq", 3, 7),
    ],
)
def test_gradients_are_those_of_triangular_solve(name, m, n, batch, dtype):
    A = drawn(*batch, m, n, dtype=dtype) + 8 * torch.eye(m, n, dtype=dtype)
    rest = ()
    if name in ("solve", "lstsq"):
        rest = (drawn(*batch, m, 2, dtype=dtype),)
    function = getattr(linalg, name)
    found, due = (gradients(function, s, A, *rest) for s in ("batch_last", "triangular_solve"))
    for gradient, expected in zip(found, due, strict=True):
        error = torch.linalg.vector_norm(gradient - expected)
        assert error <= 300 * torch.finfo(dtype).eps * torch.linalg.vector_norm(expected)


@pytest.mark.parametrize("name", ["inv", "lu_factor", "cholesky"])
def test_a_matrix_has_the_same_gradient_alone_and_in_any_batch(name):
    A = drawn(40, 6, 6)
    A = A @ A.mT + torch.eye(6)
    function = getattr(linalg, name)

    def gradient(A):
        A = A.detach().requires_grad_()
        result = function(A, strategy="batch_last")
        result = result if isinstance(result, torch.Tensor) else result[0]
        return torch.autograd.grad(result.square().sum(), A)[0]

    assert torch.equal(gradient(A)[7], gradient(A[7]))
