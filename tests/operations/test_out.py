"""`out=`, and the other names of `torch`: what PyTorch does with them."""

from __future__ import annotations

import pytest
import torch

import strategies
from strategies import linalg

A = torch.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=torch.float64)
B = torch.ones(2, 1, dtype=torch.float64)
LU, PIVOTS = torch.linalg.lu_factor(A)
CALLS = {
    "inv": (A,),
    "inv_ex": (A,),
    "inverse": (A,),
    "det": (A,),
    "slogdet": (A,),
    "solve": (A, B),
    "solve_ex": (A, B),
    "lu": (A,),
    "lu_factor": (A,),
    "lu_factor_ex": (A,),
    "lu_solve": (LU, PIVOTS, B),
    "matrix_power": (A, -2),
    "pinv": (A,),
    "qr": (A,),
    "eig": (A,),
    "tensorinv": (A, 1),
    "tensorsolve": (A, B[:, 0]),
}
each_call = pytest.mark.parametrize("name", CALLS)


def of_torch(name):
    return getattr(torch.linalg, name, None) or getattr(torch, name)


def empty_like(result):
    if isinstance(result, torch.Tensor):
        return torch.empty_like(result)
    return tuple(torch.empty_like(each) for each in result)


@each_call
def test_it_is_written_and_returned(name):
    due = of_torch(name)(*CALLS[name])
    out = empty_like(due)
    found = getattr(linalg, name)(*CALLS[name], out=out, strategy="triangular_solve")
    pairs = (
        [(found, out, due)] if isinstance(out, torch.Tensor) else zip(found, out, due, strict=True)
    )
    for result, given, expected in pairs:
        assert result is given
        torch.testing.assert_close(given, expected)


@each_call
def test_it_takes_no_gradient_as_in_torch(name):
    first, *rest = CALLS[name]
    inputs = first.clone().requires_grad_(), *rest
    said = []
    for function in (of_torch(name), getattr(linalg, name)):
        try:
            function(*inputs, out=empty_like(of_torch(name)(*CALLS[name])))
            said.append("nothing")
        except RuntimeError as error:
            said.append(str(error))
    assert said[0] == said[1]
    # Those two PyTorch composes of others, and lets pass.
    assert ("automatic differentiation" in said[0]) == (name not in ("tensorinv", "tensorsolve"))


@each_call
def test_none_is_no_out(name):
    found = getattr(linalg, name)(*CALLS[name], out=None)
    due = of_torch(name)(*CALLS[name])
    if not isinstance(due, torch.Tensor):
        found, due = tuple(found), tuple(due)
    torch.testing.assert_close(found, due)


def test_a_triangular_system_and_an_out():
    out = torch.empty_like(B)
    assert linalg.solve_triangular(A, B, upper=True, out=out) is out
    torch.testing.assert_close(out, torch.linalg.solve_triangular(A, B, upper=True))


def test_what_takes_no_out_in_torch_takes_none():
    for function in (torch.logdet, linalg.logdet):
        with pytest.raises(TypeError):
            function(A, out=torch.empty(()))


@pytest.mark.parametrize("strategy", ["auto", *strategies.available()])
def test_inverse_and_pinverse_are_those_of_torch(strategy):
    leaf = A.clone().requires_grad_()
    for name in ("inverse", "pinverse"):
        found, due = getattr(linalg, name)(leaf, strategy=strategy), getattr(torch, name)(leaf)
        torch.testing.assert_close(found, due)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), leaf), torch.autograd.grad(due.sum(), leaf)
        )


def test_the_tolerance_of_pinverse():
    diagonal = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64))
    for rcond in (1e-15, 1e-2):
        torch.testing.assert_close(
            linalg.pinverse(diagonal, rcond), torch.pinverse(diagonal, rcond)
        )
