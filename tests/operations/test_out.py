"""`out=`, and the other names of `torch`: what PyTorch does with them."""

from __future__ import annotations

import functools

import pytest
import torch
from comparison import of_torch, require_alike
from torch.utils._pytree import tree_leaves, tree_map

import strategies
from strategies import linalg

A = torch.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=torch.float64)
B = torch.ones(2, 1, dtype=torch.float64)
LU, PIVOTS = torch.linalg.lu_factor(A)
CALLS = {
    "cholesky_ex": (A,),
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


def empty_like(result):
    return tree_map(torch.empty_like, tuple(result) if isinstance(result, tuple) else result)


@each_call
def test_it_is_written_and_returned(name):
    due = of_torch(name)(*CALLS[name])
    out = empty_like(due)
    found = getattr(linalg, name)(*CALLS[name], out=out, strategy="triangular_solve")
    for result, given, expected in zip(*map(tree_leaves, (found, out, due)), strict=True):
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


@pytest.mark.parametrize("name", [*CALLS, "logdet"])
def test_none_is_no_out(name):
    first, *rest = CALLS.get(name, (A,))
    inputs = first.clone().requires_grad_(), *rest
    found, due = getattr(linalg, name)(*inputs, out=None), of_torch(name)(*inputs)
    for one, other in zip(*map(tree_leaves, (found, due)), strict=True):
        torch.testing.assert_close(one, other)
        assert one.requires_grad == other.requires_grad


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
    for name in ("inverse", "pinverse"):
        ours = functools.partial(getattr(linalg, name), strategy=strategy)
        require_alike(ours, getattr(torch, name), A.clone().requires_grad_())


def test_the_tolerance_of_pinverse():
    diagonal = torch.diag(torch.tensor([1.0, 1e-3], dtype=torch.float64))
    for rcond in (1e-15, 1e-2):
        torch.testing.assert_close(
            linalg.pinverse(diagonal, rcond), torch.pinverse(diagonal, rcond)
        )
