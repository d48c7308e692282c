"""Inputs and outputs that a program overwrites between the forward and the backward."""

from __future__ import annotations

import pytest
import torch
from comparison import of_torch

import strategies
from strategies import linalg

_generator = torch.Generator().manual_seed(0)
A = torch.randn(2, 3, 3, dtype=torch.float64, generator=_generator) + 3 * torch.eye(3)
B = torch.randn(2, 3, 2, dtype=torch.float64, generator=_generator)
DEFINITE = A @ A.mT
FACTOR = torch.linalg.cholesky(DEFINITE)
LU, PIVOTS = torch.linalg.lu_factor(A)

CALLS = {
    "cholesky": (DEFINITE,),
    "cholesky_ex": (DEFINITE,),
    "cholesky_inverse": (FACTOR,),
    "cholesky_solve": (B, FACTOR),
    "det": (A,),
    "eig": (A,),
    "inv": (A,),
    "inv_ex": (A,),
    "logdet": (DEFINITE,),
    "lstsq": (A[:, :, :2], B),
    "lu": (A,),
    "lu_factor": (A,),
    "lu_factor_ex": (A,),
    "lu_solve": (LU, PIVOTS, B),
    "matrix_power": (A, -2),
    "pinv": (A[:, :, :2],),
    "qr": (A,),
    "slogdet": (A,),
    "solve": (A, B),
    "solve_ex": (A, B),
    "solve_triangular": (A, B),
}
STRATEGIES = ["auto", *strategies.available()]


def is_float(argument):
    return isinstance(argument, torch.Tensor) and argument.is_floating_point()


def inputs_of(name):
    """The places of those that are differentiated."""
    return [i for i, each in enumerate(CALLS[name]) if is_float(each)]


def gradients(name, strategy, scale=1.0, change=None, order=1):
    """The gradients after a change in place; of a change they are those without, or an error."""
    function = getattr(linalg, name) if strategy else of_torch(name)
    options = {"strategy": strategy} if strategy else {}
    options |= {"upper": True} if name == "solve_triangular" else {}
    arguments = [each.clone().requires_grad_() if is_float(each) else each for each in CALLS[name]]
    leaves = [*filter(is_float, arguments)]
    # No leaves, which autograd lets nobody change.
    given = [each * scale if is_float(each) else each for each in arguments]
    result = function(*given, **options)
    outputs = result if isinstance(result, tuple) else (result,)
    used = [each for each in outputs if each.requires_grad and each.numel()]
    loss = sum((each * 1).abs().square().sum() for each in used)
    if change is not None:
        kind, position = change
        with torch.no_grad():
            {"input": given, "output": used}[kind][position].add_(1)
    if order == 1:
        return torch.autograd.grad(loss, leaves)
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    return torch.autograd.grad(sum((each**3).sum() for each in first), leaves)


CASES = [
    *((name, 1.0, order) for name in CALLS for order in (1, 2)),
    ("inv", 2.0**200, 1),
    ("solve", 2.0**200, 1),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("name", "scale", "order"), CASES)
def test_an_input_that_torch_does_not_need_unchanged_is_not_needed(name, strategy, scale, order):
    for place in inputs_of(name):
        change = "input", place
        try:
            gradients(name, None, 1.0, change, order)
        except RuntimeError:
            continue  # torch needs it
        found, due = (gradients(name, strategy, scale, each, order) for each in (change, None))
        torch.testing.assert_close(found, due, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", CALLS)
def test_a_change_is_refused_or_of_no_effect(name, strategy):
    due = gradients(name, strategy)
    changes = [("input", place) for place in inputs_of(name)]
    for change in [*changes, *(("output", i) for i in range(3))]:
        try:
            found = gradients(name, strategy, 1.0, change)
        except (RuntimeError, IndexError):  # refused; or an output that is not there
            continue
        torch.testing.assert_close(found, due, rtol=1e-9, atol=1e-12)
