"""Inputs and outputs that a program overwrites between the forward and the backward."""

import pytest
import torch
from arguments import ARGUMENTS, is_float, leaves_of, ours_and_torchs

import strategies

STRATEGIES = ["auto", *strategies.available()]


def inputs_of(name):
    """The places of those that are differentiated."""
    return [i for i, each in enumerate(ARGUMENTS[name]) if is_float(each)]


def gradients(name, strategy, scale=1.0, change=None, order=1):
    """The gradients after a change in place; of a change they are those without, or an error."""
    ours, of_torch = ours_and_torchs(name, strategy=strategy)
    arguments = leaves_of(name)
    leaves = [*filter(is_float, arguments)]
    # No leaves, which autograd lets nobody change.
    given = [each * scale if is_float(each) else each for each in arguments]
    result = (ours if strategy else of_torch)(*given)
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
    *((name, 1.0, order) for name in ARGUMENTS for order in (1, 2)),
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
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_change_is_refused_or_of_no_effect(name, strategy):
    due = gradients(name, strategy)
    changes = [("input", place) for place in inputs_of(name)]
    for change in [*changes, *(("output", i) for i in range(3))]:
        try:
            found = gradients(name, strategy, 1.0, change)
        except (RuntimeError, IndexError):  # refused; or an output that is not there
            continue
        torch.testing.assert_close(found, due, rtol=1e-9, atol=1e-12)
