"""Launching: pieces, threads, processes and the compiler's cache."""

import multiprocessing
import subprocess
import sys

import pytest
import torch

from strategies.kernels.cpu import loops, threads, watchers


@pytest.fixture
def factors():
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(501, 6, 6, dtype=torch.float64, generator=generator)
    LU, pivots = torch.linalg.lu_factor(A)
    return LU, pivots, torch.randn(A.shape, dtype=A.dtype, generator=generator)


def _inv(factors, flops):
    result = torch.full_like(factors[2], torch.nan)
    threads.run(loops.inv, flops, result.shape[:1], *factors, result)
    return result


def test_threads_share_the_batch_and_leave_no_matrix_out(factors):
    torch.set_num_threads(3)
    try:
        split = _inv(factors, 1e9)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(split, _inv(factors, 1))


def test_watchers_hear_of_complex_work_as_four_times_the_real(factors):
    heard = []
    watchers.append(heard.append)
    try:
        _inv(factors, 10)
        _inv(tuple(t if t.dtype == torch.int32 else t.to(torch.complex128) for t in factors), 10)
    finally:
        watchers.remove(heard.append)
    assert heard == [5010, 20040]


def test_without_a_folder_for_its_cache_a_kernel_is_compiled_all_the_same(factors, monkeypatch):
    compile_function = threads.numba.cfunc

    def refuses_to_cache(*signature, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_function(*signature, **options)

    expected = _inv(factors, 1)
    threads._compiled.cache_clear()
    monkeypatch.setattr(threads.numba, "cfunc", refuses_to_cache)
    assert torch.equal(_inv(factors, 1), expected)
    threads._compiled.cache_clear()


def test_without_the_openmp_of_torch_other_threads_share_the_batch(factors, monkeypatch):
    expected = _inv(factors, 1)
    monkeypatch.setattr(threads, "_team", lambda: None)
    torch.set_num_threads(3)
    try:
        assert torch.equal(_inv(factors, 1e9), expected)
    finally:
        torch.set_num_threads(1)


def _in_a_child(factors, queue):
    queue.put(_inv(factors, 1e9).sum().item())


def test_a_forked_process_has_threads_of_its_own(factors):
    torch.set_num_threads(3)
    try:
        here = _inv(factors, 1e9)
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=_in_a_child, args=(factors, queue))
        child.start()
        child.join(timeout=60)
        assert child.exitcode == 0
    finally:
        torch.set_num_threads(1)
    assert queue.get() == here.sum().item()


def test_the_compiler_is_not_imported_before_it_is_needed():
    code = "import sys, strategies; print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
