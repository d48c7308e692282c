"""Inputs and outputs that a program overwrites between the forward and the backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import strategies
from strategies import linalg

_generator = torch.Generator().manual_seed(0)
A = torch.randn(2, 3, 3, dtype=torch.float64, generator=_generator) + 3 * torch.eye(3)
B = torch.randn(2, 3, 2, dtype=torch.float64, generator=_generator)
DEFINITE = A @ A.mT
FACTOR = torch.linalg.cholesky(DEFINITE)
LU, PIVOTS = torch.linalg.lu_factor(A)

CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    name: (getattr(linalg, name), getattr(torch.linalg, name, None) or getattr(torch, name), inputs)
    for name, inputs in {
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
        "pinv": (A[:, :, :2],),
        "qr": (A,),
        "slogdet": (A,),
        "solve": (A, B),
        "solve_ex": (A, B),
    }.items()
}
CALLS |= {
    "matrix_power": (
        lambda A, **options: linalg.matrix_power(A, -2, **options),
        lambda A: torch.linalg.matrix_power(A, -2),
        (A,),
    ),
    "solve_triangular": (
        lambda A, B, **options: linalg.solve_triangular(A, B, upper=True, **options),
        lambda A, B: torch.linalg.solve_triangular(A, B, upper=True),
        (A, B),
    ),
    "lu_solve": (
        lambda LU, B, **options: linalg.lu_solve(LU, PIVOTS, B, **options),
        lambda LU, B: torch.linalg.lu_solve(LU, PIVOTS, B),
        (LU, B),
    ),
}

STRATEGIES = ["auto", *strategies.available()]


def gradients(call, inputs, scale=1.0, change=None, order=1):
    """The gradients after a change in place; of a change they are those without, or an error."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    given = [each * scale for each in leaves]  # no leaves, which autograd lets nobody change
    result = call(*given)
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
    ours, native, inputs = CALLS[name]
    for position in range(len(inputs)):
        change = "input", position
        try:
            gradients(native, inputs, 1.0, change, order)
        except RuntimeError:
            continue  # torch needs it

        def call(*given):
            return ours(*given, strategy=strategy)

        due = gradients(call, inputs, scale, None, order)
        found = gradients(call, inputs, scale, change, order)
        for one, other in zip(found, due, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", CALLS)
def test_a_change_is_refused_or_of_no_effect(name, strategy):
    ours, _, inputs = CALLS[name]

    def call(*given):
        return ours(*given, strategy=strategy)

    due = gradients(call, inputs)
    count = len(call(*inputs)) if isinstance(call(*inputs), tuple) else 1
    for change in [
        *(("input", i) for i in range(len(inputs))),
        *(("output", i) for i in range(count)),
    ]:
        try:
            found = gradients(call, inputs, 1.0, change)
        except (RuntimeError, IndexError):  # refused; or an output without a gradient
            continue
        for one, other in zip(found, due, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
