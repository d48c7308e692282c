"""Kernels that do not come to their end: for want of memory, whoever calls them gets no numbers."""

import sys

import pytest

from tests.process import run_python

_PROGRAM = """
import resource, torch
from strategies import linalg
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
def case(n):
    A = torch.randn(n, n, dtype=torch.float64, generator=generator) + n * torch.eye(n)
    G = torch.randn(n, n, dtype=torch.float64, generator=generator)
    A = torch.linalg.cholesky(A @ A.mT) if {name!r} == "cholesky_inverse" else A
    A = A[:, : n // 2] if {name!r} == "pinv" else A
    return A.requires_grad_(), G
function = getattr(linalg, {name!r})
def gradient(A):
    result = function(A, strategy={strategy!r})
    (found,) = torch.autograd.grad(result.square().sum(), A)
    return found
A, G = case(400)
expected = gradient(A)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
outcomes = set()
for spare in (1, 3, 6, 10, 20, 40):
    resource.setrlimit(resource.RLIMIT_AS, (used + spare * 2**20, resource.RLIM_INFINITY))
    try:
        found = gradient(A)
    except (RuntimeError, MemoryError) as error:
        found = error
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if isinstance(found, torch.Tensor):
        torch.testing.assert_close(found, expected)
    outcomes.add(type(found).__name__)
print(sorted(outcomes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process may allocate")
@pytest.mark.parametrize("strategy", ["fused", pytest.param("blocked_lu", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        "pinv",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("inv", "cholesky_inverse", "det")
        ),
    ],
)
def test_without_memory_there_is_an_error_or_the_right_numbers(name, strategy):
    assert "Tensor" in run_python(_PROGRAM.format(name=name, strategy=strategy)).stdout
