"""The calls that installed operators leave to PyTorch."""

import pytest
import torch

import strategies
from benchmarks.declined import calls
from tests.autograd.plain_calls import needs_extension


@needs_extension
@pytest.mark.parametrize("reason", [each for each in calls() if "kernels" not in each])
def test_results_are_those_of_pytorch(reason):
    call = calls()[reason]
    due = call()
    with strategies.install():
        assert torch.equal(call(), due)
