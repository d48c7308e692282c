"""The calls that installed operators leave to PyTorch."""

import pytest
import torch

import strategies
from benchmarks.declined import calls
from strategies.kernels import extension


@pytest.mark.skipif(extension.load() is None, reason="the fast path was not built")
@pytest.mark.parametrize("reason", [each for each in calls() if "kernels" not in each])
def test_results_are_those_of_pytorch(reason):
    call = calls()[reason]
    due = call()
    with strategies.install():
        assert torch.equal(call(), due)
