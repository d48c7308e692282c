"""Kernels for CUDA, in Triton's interpreter where there is no GPU, against those for the CPU."""

import os
import subprocess
import sys

import pytest
import torch

from strategies import linalg
from strategies.factors import LUFactors
from strategies.factors.pivots import inverse_order
from strategies.formulas import solve as formula
from strategies.kernels import cuda
from strategies.kernels.cpu import backward

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPES = [torch.float32, torch.float64]


def numbers(*shape, dtype):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def computed(kernel, *tensors):
    return kernel(*(t.to(DEVICE) for t in tensors))


def agrees(found, expected):
    tolerance = 200 * torch.finfo(expected.dtype).eps
    assert found.is_contiguous()
    assert (found.cpu() - expected).abs().max() <= tolerance * expected.abs().max()


def test_lu_of_any_shape_and_batch():
    shapes = [(3, 1, 1), (3, 2, 2), (3, 5, 5), (3, 9, 4), (3, 3, 11), (3, 16, 16)]
    for shape in [*shapes, (3, 3), (1, 3, 3), (5, 3, 3), (2, 3, 3, 3), (700, 3, 3)]:
        for dtype in DTYPES:
            LU, pivots = torch.linalg.lu_factor(numbers(*shape, dtype=dtype))
            read = LU, inverse_order(pivots, shape[-2]), numbers(*shape, dtype=dtype)
            agrees(computed(cuda.lu, *read), backward.lu(*read))


def test_solve():
    for n, k in ((1, 1), (3, 1), (4, 7), (10, 3)):
        for dtype in DTYPES:
            factors = LUFactors(*torch.linalg.lu_factor(numbers(4, n, n, dtype=dtype)))
            solution = factors.solve(numbers(4, n, k, dtype=dtype))
            cotangent = numbers(4, n, k, dtype=dtype)
            found = computed(cuda.solve, factors.LU, factors.pivots, solution, cotangent)
            expected = formula.backward(factors, solution, cotangent)
            for each, other in zip(found, expected, strict=True):
                agrees(each, other)


def test_inv():
    for n in (1, 2, 6, 13):
        for dtype in DTYPES:
            factors = LUFactors(*torch.linalg.lu_factor(numbers(4, n, n, dtype=dtype)))
            cotangent = numbers(4, n, n, dtype=dtype)
            found = computed(cuda.inv, factors.LU, factors.pivots, cotangent)
            agrees(found, formula.inv_backward(factors, cotangent))


def test_arguments_of_any_strides():
    for dtype in DTYPES:
        LU, pivots = torch.linalg.lu_factor(numbers(4, 3, 3, dtype=dtype))
        cotangent = numbers(3, 3, 4, dtype=dtype)[..., ::2].permute(2, 1, 0)
        read = LU[::2], inverse_order(pivots, 3)[::2], cotangent
        agrees(computed(cuda.lu, *read), backward.lu(*read))


def test_nothing_on_the_cpu_and_nothing_large_or_empty_is_supported(monkeypatch):
    assert not cuda.lu.supports(*[torch.eye(3)] * 3)
    monkeypatch.setattr(cuda.CUDAKernel, "_runs_on", lambda *_: True)
    for shape, is_supported in {(32, 32): True, (33, 2): False, (0, 3, 3): False}.items():
        assert cuda.lu.supports(*[torch.empty(shape)] * 3) is is_supported


def test_batch_last_uses_what_is_supported(monkeypatch):
    A = numbers(6, 4, 4, dtype=torch.float64).to(DEVICE).requires_grad_()
    B = numbers(6, 4, 2, dtype=torch.float64).to(DEVICE)
    monkeypatch.setattr(cuda.CUDAKernel, "_runs_on", lambda *_: True)
    for kernel, call in {
        cuda.lu: lambda s: linalg.lu_factor(A, strategy=s).LU,
        cuda.solve: lambda s: linalg.solve(A, B, strategy=s),
        cuda.inv: lambda s: linalg.inv(A, strategy=s),
    }.items():
        used = []
        run = kernel._run
        with monkeypatch.context() as patch:
            patch.setattr(kernel, "_run", lambda *a, run=run, used=used: used.append(1) or run(*a))
            found = torch.autograd.grad(call("batch_last").sum(), A)[0]
        assert used == [1], kernel.name
        agrees(found, torch.autograd.grad(call("native").sum(), A)[0].cpu())


def test_the_programs_compile_for_a_gpu():
    for architecture in ("80", "90"):
        environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_DEFAULT_FP_FUSION": "1"}
        subprocess.run([sys.executable, "-c", COMPILE, architecture], env=environment, check=True)


COMPILE = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from strategies.kernels.cuda.programs import PROGRAMS

KINDS = {"pivots": "*i32", "inverse_order": "*i64"}
target = GPUTarget("cuda", int(sys.argv[1]), 32)
for program in PROGRAMS.values():
    for dtype in ("*fp32", "*fp64"):
        tensors = dict.fromkeys(("LU", "cotangent", "solution", "result", "rhs_result"), dtype)
        sizes = {parameter.name: 8 for parameter in program.params if parameter.is_constexpr}
        signature = {
            parameter.name: "constexpr" if parameter.is_constexpr
            else {**KINDS, **tensors}.get(parameter.name, "i32")
            for parameter in program.params
        }
        assert compile(ASTSource(program, signature, sizes), target).asm["cubin"]
"""
