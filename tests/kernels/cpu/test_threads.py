"""Sharing a batch between threads, those of torch or others."""

import multiprocessing

import pytest
import torch

from strategies.kernels.cpu import threads
from strategies.kernels.cpu.backward import inv


@pytest.fixture
def factors():
    """Of a batch that is worth several threads."""
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(501, 12, 12, dtype=torch.float64, generator=generator)
    return *torch.linalg.lu_factor(A), torch.randn(A.shape, dtype=A.dtype, generator=generator)


@pytest.fixture
def _three_threads():
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


def _in_one_thread(factors):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return inv(*factors)
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("_three_threads")
def test_threads_share_the_batch_and_leave_no_matrix_out(factors):
    assert torch.equal(inv(*factors), _in_one_thread(factors))


@pytest.mark.usefixtures("_three_threads")
def test_without_the_openmp_of_torch_other_threads_share_the_batch(factors, monkeypatch):
    monkeypatch.setattr(threads, "_team", lambda: None)
    assert torch.equal(inv(*factors), _in_one_thread(factors))


def _in_a_child(factors, queue):
    queue.put(inv(*factors)[::50, 0, 0].tolist())  # not a sum: torch's own threads do not survive


@pytest.mark.usefixtures("_three_threads")
def test_a_forked_process_has_threads_of_its_own(factors):
    here = inv(*factors)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(factors, queue))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == 0
    assert queue.get() == here[::50, 0, 0].tolist()
