"""The measured callables compute what they claim, once a call."""

import pytest
import torch

import strategies
from strategies.measuring import Case, backward_of, forward, forward_backward_of
from strategies.measuring.case import OPERATIONS, SQUARE_ONLY


def case_of(operation, dtype=torch.float64):
    return Case(operation, (5, 5) if operation in SQUARE_ONLY else (6, 4), batch=2, dtype=dtype)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_outputs_are_differentiable(operation, dtype):
    outputs = forward(case_of(operation, dtype), "native")
    assert outputs
    assert all(out.requires_grad for out in outputs)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", strategies.available())
def test_both_ways_give_the_gradients_of_the_inputs(operation, name):
    case = case_of(operation)
    backward, both = backward_of(case, name), forward_backward_of(case, name)
    for a, first, again, other in zip(case.inputs(), backward(), backward(), both(), strict=True):
        assert first.shape == a.shape
        assert torch.equal(first, again)
        torch.testing.assert_close(first, other)
        assert a.grad is None


def test_a_strategy_may_be_an_instance():
    case = Case("pinv", (6, 4))
    (by_name,), (by_instance,) = (
        backward_of(case, s)() for s in ("native", strategies.get("native"))
    )
    assert torch.equal(by_name, by_instance)
