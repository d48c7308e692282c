"""Every kernel compiles for GPUs, without one."""

import pytest

from tests.process import run_python

pytest.importorskip("triton")

COMPILE = """
import itertools, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from strategies.kernels.cuda import backward, forward

OF_INTEGERS = "pivots", "positions", "orders", "flag"
SCALARS = {"count": "i32", "safety": "fp32", "far": "fp32"}
architecture, size = sys.argv[1:]
target = GPUTarget("cuda", int(architecture), 32)
names = "lu", "solve", "inv", "det", "cholesky"
for module, name in itertools.product((forward, backward), names):
    kernel = vars(module).get(name)
    for dtype in ("*fp32", "*fp64") if kernel else ():
        signature = {
            parameter.name: "constexpr" if parameter.is_constexpr
            else "*i32" if parameter.name in OF_INTEGERS
            else SCALARS.get(parameter.name, dtype)
            for parameter in kernel.params
        }
        constants = [each.name for each in kernel.params if each.is_constexpr]
        sizes = {constant: {"B": 32}.get(constant, int(size)) for constant in constants}
        assert compile(ASTSource(kernel, signature, sizes), target).asm["cubin"]
"""


@pytest.mark.parametrize(
    ("architecture", "size"),
    [("80", "2"), *(pytest.param(each, "4", marks=pytest.mark.slow) for each in ("80", "90"))],
)
def test_every_kernel_compiles(architecture, size):
    fused = {"TRITON_INTERPRET": "0", "TRITON_DEFAULT_FP_FUSION": "1"}
    run_python(COMPILE, architecture, size, timeout=290, **fused)
