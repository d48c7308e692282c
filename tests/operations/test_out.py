"""`out=`: what PyTorch does with it."""

import pytest
import torch
from arguments import ARGUMENTS, A, leaves_of, ours_and_torchs
from torch.utils._pytree import tree_leaves, tree_map

from strategies import linalg

each_name = pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "logdet"])


def empty_like(result):
    return tree_map(torch.empty_like, tuple(result) if isinstance(result, tuple) else result)


@each_name
def test_it_is_written_and_returned(name):
    ours, of_torch = ours_and_torchs(name, strategy="triangular_solve")
    due = of_torch(*ARGUMENTS[name])
    out = empty_like(due)
    found = ours(*ARGUMENTS[name], out=out)
    for result, given, expected in zip(*map(tree_leaves, (found, out, due)), strict=True):
        assert result is given
        torch.testing.assert_close(given, expected)


@each_name
def test_it_takes_no_gradient_as_in_torch(name):
    said = []
    for function in ours_and_torchs(name):
        try:
            function(*leaves_of(name), out=empty_like(function(*ARGUMENTS[name])))
            said.append("nothing")
        except RuntimeError as error:
            said.append(str(error))
    assert said[0] == said[1]
    # Those two PyTorch composes of others, and lets pass.
    assert ("automatic differentiation" in said[0]) == (name not in ("tensorinv", "tensorsolve"))


# The singular values of `lstsq` are another's: docs/differences.md.
@pytest.mark.parametrize("name", [name for name in ARGUMENTS if name != "lstsq"])
def test_none_is_no_out(name):
    ours, of_torch = ours_and_torchs(name)
    inputs = leaves_of(name)
    found, due = ours(*inputs, out=None), of_torch(*inputs)
    for one, other in zip(*map(tree_leaves, (found, due)), strict=True):
        torch.testing.assert_close(one, other)
        assert one.requires_grad == other.requires_grad


def test_what_takes_no_out_in_torch_takes_none():
    for function in (torch.logdet, linalg.logdet):
        with pytest.raises(TypeError):
            function(A, out=torch.empty(()))
