"""Calling CPU kernels: flops, and where nothing may be compiled."""

import subprocess
import sys

import torch

from strategies.kernels.cpu import watchers
from strategies.kernels.cpu.backward import inv
from strategies.kernels.cpu.inspection import determinant


def test_watchers_hear_of_complex_work_as_four_times_the_real():
    heard = []
    LU, pivots = torch.linalg.lu_factor(torch.randn(5, 3, 3, dtype=torch.float64))
    watchers.append(heard.append)
    try:
        inv(LU, pivots, LU)
        inv(*(t.to(torch.complex128) if t is LU else t for t in (LU, pivots, LU)))
    finally:
        watchers.remove(heard.append)
    assert heard == [5 * 4 * 27, 4 * 5 * 4 * 27]


def test_an_empty_batch_is_an_empty_result():
    LU, pivots = torch.linalg.lu_factor(torch.empty(0, 3, 3))
    assert inv(LU, pivots, LU).shape == (0, 3, 3)


def test_a_kernel_is_known_by_its_name_and_its_documentation():
    assert determinant.name == "determinant"
    assert determinant.__doc__.startswith("Det A")


def test_the_compiler_is_not_imported_before_it_is_needed():
    code = "import sys, strategies; print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_where_numba_may_compile_nothing_operations_of_torch_are_used(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    code = """
import torch
from strategies import linalg
A = torch.eye(3, dtype=torch.float64).requires_grad_()
for strategy in ("batch_last", "blocked_lu"):
    for f in (lambda: linalg.lu_factor(A, strategy=strategy).LU, lambda: linalg.det(A, strategy=strategy),
              lambda: linalg.inv(A, strategy=strategy), lambda: linalg.pinv(A, strategy=strategy),
              lambda: linalg.solve(A, A, strategy=strategy),
              lambda: linalg.lstsq(A, A, strategy=strategy)[0]):
        assert torch.autograd.grad(f().sum(), A)[0].isfinite().all()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
