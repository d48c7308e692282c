"""Every program compiles for GPUs, without one."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

COMPILE = """
import sys
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from strategies.kernels.cuda import backward, forward

OF_INTEGERS = "pivots", "positions", "orders", "flag"
SCALARS = {"count": "i32", "safety": "fp32", "far": "fp32"}
architecture, name = sys.argv[1:]
target = GPUTarget("cuda", int(architecture), 32)
for module in (forward, backward):
    program = vars(module).get(name)
    for dtype in ("*fp32", "*fp64") if program else ():
        signature = {
            parameter.name: "constexpr" if parameter.is_constexpr
            else "*i32" if parameter.name in OF_INTEGERS
            else SCALARS.get(parameter.name, dtype)
            for parameter in program.params
        }
        sizes = {each.name: {"B": 32}.get(each.name, 4) for each in program.params if each.is_constexpr}
        assert compile(ASTSource(program, signature, sizes), target).asm["cubin"]
"""


@pytest.mark.parametrize("architecture", ["80", pytest.param("90", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", ["lu", "solve", "inv", "det", "cholesky"])
def test_a_program_compiles(program, architecture):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_DEFAULT_FP_FUSION": "1"}
    command = [sys.executable, "-c", COMPILE, architecture, program]
    subprocess.run(command, env=environment, check=True)
