"""Sharing a batch between threads, those of torch or others."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from strategies.kernels.cpu import threads
from strategies.kernels.cpu.calls import reverse_cholesky
from tests.process import run, run_python


@pytest.fixture
def factors():
    """Of a batch that is worth several threads."""
    U, G = torch.randn(2, 501, 12, 12, dtype=torch.float64)
    return (U.triu() + 3 * torch.eye(12)).mT, G


@pytest.fixture
def due(factors):
    """What one thread computes; then there are three."""
    found = reverse_cholesky(*factors)
    torch.set_num_threads(3)
    yield found
    torch.set_num_threads(1)


def test_threads_share_the_batch_and_leave_no_matrix_out(factors, due):
    assert torch.equal(reverse_cholesky(*factors), due)


def test_without_the_openmp_of_torch_other_threads_share_the_batch(factors, due, monkeypatch):
    monkeypatch.setattr(threads, "team", lambda: None)
    assert torch.equal(reverse_cholesky(*factors), due)


def _in_a_child(factors, queue):
    queue.put(
        reverse_cholesky(*factors)[::50, 0, 0].tolist()
    )  # not a sum: torch's own threads do not survive


def test_a_forked_process_has_threads_of_its_own(factors, due):
    reverse_cholesky(*factors)  # starts those of this process
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(factors, queue))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == 0
    assert queue.get() == due[::50, 0, 0].tolist()


def test_one_thread_starts_no_other(factors, monkeypatch):
    for starts in ("team", "_pool"):
        monkeypatch.setattr(threads, starts, lambda: pytest.fail("another thread"))
    assert torch.get_num_threads() == 1
    reverse_cholesky(*factors)


def test_a_change_of_the_number_of_threads_counts_at_the_next_call(factors, due, monkeypatch):
    asked = []

    def team(kernel, block, count, _flags):
        asked.append(count)
        kernel(block)

    monkeypatch.setattr(threads, "team", lambda: team)
    for count in (3, 2, 1):
        torch.set_num_threads(count)
        reverse_cholesky(*factors)
    assert asked == [3, 2]


def test_several_threads_of_python_may_call_at_once(factors, due):
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: reverse_cholesky(*factors), range(40)))
    assert all(torch.equal(result, due) for result in results)


WORKERS = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset
from strategies import linalg

def gradients(seed):
    A = torch.randn(300, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    A.requires_grad_()
    # "auto" may stand for others where there is one thread.
    by = {"strategy": "fused"}
    results = linalg.inv(A, **by), linalg.pinv(A[:, :, :4], **by), linalg.lu_factor(A, **by).LU
    return torch.autograd.grad(sum(result.square().sum() for result in results), A)[0]

class Gradients(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, seed):
        assert torch.get_num_threads() == 1
        return gradients(seed)

if __name__ == "__main__":
    torch.set_num_threads(2)
    here = [gradients(seed) for seed in range(4)]
    loader = DataLoader(
        Gradients(), batch_size=None, num_workers=2, multiprocessing_context=sys.argv[1]
    )
    there = list(loader)
    assert all(map(torch.equal, here, there))
    assert torch.equal(gradients(0), here[0])
"""


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_workers_of_a_data_loader_call_after_threads_ran_in_their_parent(start, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WORKERS)
    done = run(sys.executable, script, start)
    assert done.returncode == 0, done.stderr


LARGE = """
import torch
from strategies import linalg

torch.set_num_threads(2)  # after which MKL asks for two, even where OpenMP has none to give
A, B = torch.randn(2, 4, 200, 200, dtype=torch.float64)
definite = A @ A.mT + torch.eye(200)
tall, wide = A[..., :150], A[:, :150]

def computed(function, *operands):
    leaves = [each.clone().requires_grad_() for each in operands]
    result = function(*leaves)
    return result, *torch.autograd.grad(result.square().sum(), leaves)

for function, *operands in (
    (linalg.cholesky, definite),
    (linalg.inv, A),
    (linalg.pinv, tall),
    (linalg.solve, A, B),
    (lambda A: linalg.lu_factor(A).LU, A),
    (lambda A: linalg.lu_factor(A).LU, wide),
    (lambda A: linalg.qr(A).R, tall),
    (lambda A: linalg.slogdet(A).logabsdet, A),
    (lambda A, B: linalg.lstsq(A, B).solution, tall, B),
    (lambda A, B: linalg.lstsq(A, B).solution, wide, B[:, :150]),
):
    every = computed(function, *operands)
    for i, matrices in enumerate(zip(*operands)):
        for found, own in zip(every, computed(function, *matrices)):
            torch.testing.assert_close(found[i], own, rtol=0, atol=1e-7 * own.abs().max().item())
"""


def test_threads_that_share_large_matrices_do_not_ask_blas_for_more():
    assert not run_python(LARGE).stdout


LARGE_IN_A_CHILD = """
import os, signal, torch
from strategies import linalg

torch.set_num_threads(2)
# The kernel copies it in threads, and LAPACK factors it in one.
A = torch.randn(2, 40_000, dtype=torch.float64)

def factor():
    return linalg.lu_factor(A, strategy="fused").LU.numpy()

due = factor()
if os.fork() == 0:
    signal.alarm(60)
    os._exit(not (factor() == due).all())
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_forked_process_shares_no_large_matrix_among_threads():
    run_python(LARGE_IN_A_CHILD)
