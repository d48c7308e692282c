"""The measured callables compute what they claim, once a call."""

import itertools
import types

import pytest
import torch

import strategies
from strategies import operations
from strategies.measuring import Case, backward_of, forward, forward_backward_of
from strategies.measuring.workload import is_affordable


def case_of(operation, dtype=torch.float64):
    shape = (5, 5) if operations.get(operation).square else (6, 4)
    return Case(operation, shape, batch=2, dtype=dtype)


def test_outputs_are_differentiable():
    for operation, dtype in itertools.product(
        operations.names(), (torch.float64, torch.complex128)
    ):
        outputs = forward(case_of(operation, dtype), "native")
        assert outputs
        assert all(out.requires_grad for out in outputs)


@pytest.mark.parametrize("operation", operations.names())
def test_both_ways_give_the_gradients_of_the_inputs(operation):
    case = case_of(operation)
    for name in strategies.available():
        backward, both = backward_of(case, name), forward_backward_of(case, name)
        gradients = zip(case.inputs(), backward(), backward(), both(), strict=True)
        for a, first, again, other in gradients:
            assert first.shape == a.shape
            assert torch.equal(first, again)
            torch.testing.assert_close(first, other)
            assert a.grad is None


def test_native_is_spared_what_would_exhaust_memory_and_all_are_what_none_holds():
    for text, affordable in {"pinv 200000x4": False, "pinv 16384x32": True}.items():
        assert is_affordable(Case.parse(text), "native") == affordable
        assert is_affordable(Case.parse(text), "triangular_solve")
    assert not is_affordable(Case("inv", (2**19, 2**19)), "triangular_solve")


@pytest.mark.parametrize(("gigabytes", "affordable"), [(40, False), (140, True)])
def test_on_cuda_the_memory_of_the_device_counts(gigabytes, affordable, monkeypatch):
    properties = types.SimpleNamespace(total_memory=gigabytes * 10**9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert is_affordable(Case("pinv", (65536, 64), device="cuda:0"), "native") == affordable
