"""Kernels that do not come to their end: for want of memory, whoever calls them gets no numbers."""

from __future__ import annotations

import subprocess
import sys
from array import array

import numba
import pytest

from strategies.kernels.cpu import task, threads
from strategies.kernels.cpu.loops.arguments import groups


def _failing(block):
    for start in groups(block):
        if start == 2:
            raise MemoryError


def _finishing(block):
    for _ in groups(block):
        pass


@pytest.mark.parametrize(("loop", "finished"), [(_failing, False), (_finishing, True)])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_raises_has_not_finished_its_groups(loop, finished):
    compiled = numba.cfunc(numba.void(numba.types.CPointer(numba.float64)))(loop)
    entry = threads.ENTRY(compiled.address)
    block = array("q", task.header(4, 1))
    for _ in range(2):  # as if by two threads, of which one goes on
        entry(block.buffer_info()[0])
    assert task.is_finished(block, 4) is finished


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
@pytest.mark.parametrize("strategy", ["fused", "blocked_lu"])
@pytest.mark.parametrize("name", ["inv", "cholesky_inverse", "pinv", "det"])
def test_without_memory_there_is_an_error_or_the_right_numbers(name, strategy):
    program = _PROGRAM.format(name=name, strategy=strategy)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Tensor" in done.stdout
