"""Functions that take no part in measurements compile in one graph, with the gradients of eager mode."""

from __future__ import annotations

import pytest
import torch
from comparison import drawn

from strategies import linalg

A, B, TALL = drawn(2, 3, 3) + 3 * torch.eye(3), drawn(2, 3, 2), drawn(5, 3)
LU, PIVOTS = torch.linalg.lu_factor(A)
SINGULAR = A.clone()
SINGULAR[1, 2] = 0


def of_moduli(A, **by):
    """Of eigenvectors what their phases leave alone."""
    values, V = linalg.eig(A, **by)
    return values, V.abs()


def qr(mode):
    return lambda A, **by: linalg.qr(A, mode, **by)[mode == "r" :]


def lu_solve(LU, B, **by):
    return linalg.lu_solve(LU, PIVOTS, B, adjoint=True, **by)


def solve_triangular(A, B, **by):
    return linalg.solve_triangular(A, B, upper=True, **by)


BOTH = ("auto", "explicit_inverse")
CALLS = {
    "eig": (of_moduli, (A,), ("triangular_solve",)),
    "inv_ex": (lambda A, **by: linalg.inv_ex(A, **by).inverse, (A,), ("auto",)),
    "lu_solve": (lu_solve, (LU, B), BOTH),
    "matrix_power": (lambda A, **by: linalg.matrix_power(A, -2, **by), (A,), ("auto",)),
    **{f"qr {m}": (qr(m), (TALL,), ("triangular_solve",)) for m in ("reduced", "complete", "r")},
    "solve_ex": (lambda A, B, **by: linalg.solve_ex(A, B, **by).result, (A, B), ("auto",)),
    "solve_triangular": (solve_triangular, (A, B), BOTH),
}


def compiled(function):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.mark.parametrize(
    ("name", "strategy"), [(name, by) for name, (*_, choices) in CALLS.items() for by in choices]
)
def test_gradients_are_those_of_eager_mode(name, strategy):
    call, inputs, _ = CALLS[name]
    leaves = [each.clone().requires_grad_() for each in inputs]

    def loss(*leaves):
        found = call(*leaves, strategy=strategy)
        parts = [found] if isinstance(found, torch.Tensor) else found
        # Squares of unit columns are constant.
        return sum((part.abs() ** 3).sum() for part in parts)

    found, due = (torch.autograd.grad(each(*leaves), leaves) for each in (compiled(loss), loss))
    torch.testing.assert_close(found, due)


@pytest.mark.parametrize(("name", "inputs"), [("inv_ex", (SINGULAR,)), ("solve_ex", (SINGULAR, B))])
def test_singular_matrices_are_reported_as_by_torch(name, inputs):
    found, due = compiled(getattr(linalg, name))(*inputs), getattr(torch.linalg, name)(*inputs)
    assert torch.equal(found.info, due.info)
