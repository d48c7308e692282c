"""The kernels for GPUs, in Triton's interpreter where there is no GPU, against those for the CPU."""

import os
import subprocess
import sys

import pytest
import torch

from strategies import registry
from strategies.factors import LUFactors
from strategies.factors.pivots import inverse_order
from strategies.kernels import cuda
from strategies.measuring import Case, backward_of

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCHES = [(), (1,), (5,), (2, 3), (700,)]


def numbers(*shape, dtype):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def agrees(computed, expected):
    scale = expected.abs().max()
    tolerance = 200 * torch.finfo(expected.dtype).eps
    assert computed.is_contiguous()
    assert (computed.cpu() - expected).abs().max() <= tolerance * scale


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (9, 4), (3, 11), (16, 16)])
def test_lu(shape, dtype):
    LU, pivots = torch.linalg.lu_factor(numbers(3, *shape, dtype=dtype))
    order, cotangent = inverse_order(pivots, shape[0]), numbers(3, *shape, dtype=dtype)
    computed = cuda.lu(*(t.to(DEVICE) for t in (LU, order, cotangent)))
    agrees(computed, registry.get("batch_last").lu_backward(LU, order, cotangent))


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_any_batch_dimensions(batch, dtype):
    LU, pivots = torch.linalg.lu_factor(numbers(*batch, 3, 3, dtype=dtype))
    order, cotangent = inverse_order(pivots, 3), numbers(*batch, 3, 3, dtype=dtype)
    computed = cuda.lu(*(t.to(DEVICE) for t in (LU, order, cotangent)))
    agrees(computed, registry.get("batch_last").lu_backward(LU, order, cotangent))


@pytest.mark.parametrize("sides", [(1, 1), (3, 1), (4, 7), (10, 3)])
def test_solve(sides, dtype):
    n, k = sides
    factors = LUFactors(*torch.linalg.lu_factor(numbers(4, n, n, dtype=dtype)))
    solution, cotangent = (
        factors.solve(numbers(4, n, k, dtype=dtype)),
        numbers(4, n, k, dtype=dtype),
    )
    arguments = factors.LU, factors.pivots, solution, cotangent
    computed = cuda.solve(*(t.to(DEVICE) for t in arguments))
    expected = registry.get("triangular_solve").solve_backward(factors, solution, cotangent)
    for each, other in zip(computed, expected, strict=True):
        agrees(each, other)


@pytest.mark.parametrize("n", [1, 2, 6, 13])
def test_inv(n, dtype):
    factors = LUFactors(*torch.linalg.lu_factor(numbers(4, n, n, dtype=dtype)))
    cotangent = numbers(4, n, n, dtype=dtype)
    computed = cuda.inv(*(t.to(DEVICE) for t in (factors.LU, factors.pivots, cotangent)))
    agrees(computed, registry.get("triangular_solve").inv_backward(factors, cotangent))


def test_arguments_of_any_strides(dtype):
    LU, pivots = torch.linalg.lu_factor(numbers(4, 3, 3, dtype=dtype))
    order, cotangent = (
        inverse_order(pivots, 3),
        numbers(3, 3, 4, dtype=dtype)[..., ::2].permute(2, 1, 0),
    )
    computed = cuda.lu(*(t.to(DEVICE) for t in (LU[::2], order[::2], cotangent)))
    agrees(computed, registry.get("batch_last").lu_backward(LU[::2], order[::2], cotangent))


def test_nothing_is_taken_on_the_cpu():
    assert not cuda.takes(torch.eye(3))


@pytest.mark.parametrize("operation", ["lu_factor", "solve", "inv"])
def test_batch_last_uses_what_is_taken(operation, monkeypatch):
    case = Case(operation, (4, 4), batch=6, device=DEVICE, rhs=2 if operation == "solve" else 1)
    monkeypatch.setattr(cuda, "takes", lambda *tensors: True)
    watched = []
    run = cuda._kernels().run
    monkeypatch.setattr(cuda._kernels(), "run", lambda *a: watched.append(a[0]) or run(*a))
    computed = backward_of(case, "batch_last")()
    assert watched == [{"lu_factor": "lu"}.get(operation, operation)]
    for each, other in zip(computed, backward_of(case, "native")(), strict=True):
        agrees(each, other.cpu())


@pytest.mark.parametrize("architecture", [80, 90])
def test_the_kernels_compile_for_a_gpu(architecture):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_DEFAULT_FP_FUSION": "1"}
    subprocess.run([sys.executable, "-c", COMPILE, str(architecture)], env=environment, check=True)


COMPILE = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from strategies.kernels.cuda.programs import _KERNELS

KINDS = {"pivots": "*i32", "inverse_order": "*i64"}
target = GPUTarget("cuda", int(sys.argv[1]), 32)
for kernel in _KERNELS.values():
    for dtype in ("*fp32", "*fp64"):
        tensors = dict.fromkeys(("LU", "cotangent", "solution", "result", "rhs_result"), dtype)
        sizes = {parameter.name: 8 for parameter in kernel.params if parameter.is_constexpr}
        signature = {
            parameter.name: "constexpr" if parameter.is_constexpr
            else {**KINDS, **tensors}.get(parameter.name, "i32")
            for parameter in kernel.params
        }
        assert compile(ASTSource(kernel, signature, sizes), target).asm["cubin"]
"""
