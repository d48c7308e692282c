"""Calls of every operation that has a fast path."""

import functools

import pytest
import torch
from comparison import drawn

from strategies import linalg
from strategies.kernels import extension

needs_extension = pytest.mark.skipif(
    extension.load() is None, reason="the fast path was not built: strategies.warmup() does so"
)

SQUARE, TALL, RHS = drawn(4, 4), drawn(6, 4, seed=1), drawn(6, 2, seed=2)


def rhs(A):
    return RHS[: A.shape[-2]].to(A.dtype).expand(*A.shape[:-2], -1, -1)


def positive(A):
    return A @ A.mH + torch.eye(4)


def factor(A):
    return A.tril(-1) + 2 * torch.eye(4)


def triangular(A, **options):
    return linalg.solve_triangular(A + 2 * torch.eye(4), rhs(A), **options)


def with_residuals(result):
    return torch.cat([result.solution, result.residuals.unsqueeze(-2)], dim=-2)


CALLS = {
    "inv": linalg.inv,
    "solve": lambda A, **s: linalg.solve(A, rhs(A), **s),
    "det": linalg.det,
    "slogdet": lambda A, **s: linalg.slogdet(A, **s).logabsdet,
    "lu_factor": lambda A, **s: linalg.lu_factor(A, **s).LU,
    "lu": lambda A, **s: linalg.lu(A, **s).U,
    "pinv": linalg.pinv,
    "lstsq": lambda A, **s: linalg.lstsq(A, rhs(A), **s).solution,
    "cholesky": lambda A, **s: linalg.cholesky(positive(A), **s),
    "cholesky_solve": lambda A, **s: linalg.cholesky_solve(rhs(A), factor(A), **s),
    "cholesky_inverse": lambda A, **s: linalg.cholesky_inverse(factor(A), **s),
    "qr": lambda A, **s: torch.cat(linalg.qr(A, **s), dim=-2),
    "solve_triangular of lower": functools.partial(triangular, upper=False),
    "solve_triangular of upper": functools.partial(triangular, upper=True),
    "solve_triangular of unit lower": functools.partial(
        triangular, upper=False, unitriangular=True
    ),
    "solve_triangular of unit upper": functools.partial(triangular, upper=True, unitriangular=True),
    "solve from the right": lambda A, **s: linalg.solve(A, rhs(A).mT, left=False, **s),
    "solve_triangular from the right": lambda A, **s: linalg.solve_triangular(
        factor(A), rhs(A).mT, upper=False, left=False, **s
    ),
    "slogdet with its sign": lambda A, **s: functools.reduce(torch.add, linalg.slogdet(A, **s)),
    "pinv by a relative tolerance": functools.partial(linalg.pinv, rtol=1e-6),
    "pinv by an absolute tolerance": functools.partial(linalg.pinv, atol=1e-6),
    "lstsq by a tolerance": lambda A, **s: linalg.lstsq(A, rhs(A), 1e-6, **s).solution,
    "lstsq with residuals": lambda A, **s: with_residuals(linalg.lstsq(A, rhs(A), **s)),
    "lu_factor_ex": lambda A, **s: linalg.lu_factor_ex(A, **s).LU,
    "cholesky_ex": lambda A, **s: linalg.cholesky_ex(positive(A), **s).L,
    "cholesky of upper": lambda A, **s: linalg.cholesky(positive(A), upper=True, **s),
    "cholesky_solve of upper": lambda A, **s: linalg.cholesky_solve(
        rhs(A), factor(A).mT, True, **s
    ),
    "cholesky_inverse of upper": lambda A, **s: linalg.cholesky_inverse(factor(A).mT, True, **s),
}
each_operation = pytest.mark.parametrize("operation", CALLS)
each_operation_with_tangents = pytest.mark.parametrize(
    "operation", [name for name in CALLS if name != "qr"]
)


def matrix(operation, batch=(), dtype=torch.float64):
    """What the call of an operation is given; those of a batch of three differ."""
    A = TALL if operation.startswith(("lu", "pinv", "lstsq", "qr")) else SQUARE
    A = A.to(dtype) * (1 + 0.3j if dtype.is_complex else 1)
    return A + torch.arange(3.0, dtype=torch.float64).view(3, 1, 1) / 4 if batch else A.clone()


def both(call, A, strategy="fused"):
    """The result and the gradient."""
    A = A.detach().requires_grad_()
    result = call(A, strategy=strategy)
    return result, torch.autograd.grad(result.sum().abs(), A)[0]


def matrices(*batch, dtype=torch.float64):
    """Square A, tall C, and right-hand sides of both."""
    A = torch.randn(*batch, 3, 3, dtype=dtype) + 3 * torch.eye(3, dtype=dtype)
    sizes = (5, 3), (3, 2), (5, 2)
    return A, *(torch.randn(*batch, m, n, dtype=dtype) for m, n in sizes)


def loss_of(function):
    """A nonlinear loss of what a function returns."""
    return lambda *inputs: function(*inputs).sin().square().sum()
