"""PyTensor: real matrices, by Lop, Rop and reverse over reverse mode, run by its Python linker."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.gradient import Lop, Rop, grad
from pytensor.tensor import slinalg

Arrays = Sequence[np.ndarray[Any, Any]]

FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cholesky": lambda A: (pt.linalg.cholesky(A),),
    "cholesky_solve": lambda L, B: (slinalg.cho_solve((L, True), B),),
    "det": lambda A: (pt.linalg.det(A),),
    "slogdet": lambda A: (pt.linalg.slogdet(A)[1],),
    "inv": lambda A: (pt.linalg.inv(A),),
    "lstsq": lambda A, B: (pt.linalg.lstsq(A, B, None)[0],),
    "lu_factor": lambda A: (slinalg.lu_factor(A)[0],),
    "lu": lambda A: tuple(slinalg.lu(A)[1:]),
    "pinv": lambda A: (pt.linalg.pinv(A),),
    "solve": lambda A, B: (pt.linalg.solve(A, B),),
}
"""The differentiable outputs of every operation."""


def value(operation: str, inputs: Arrays) -> Any:
    x, outputs = _prepared(operation, inputs)
    return _evaluated(x, outputs, inputs)


def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
    x, outputs = _prepared(operation, inputs)
    return _evaluated(x, _pulled_back(outputs, x, cotangents), inputs)


def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
    x, outputs = _prepared(operation, inputs)
    return _evaluated(x, Rop(list(outputs), x, [pt.constant(each) for each in tangents]), inputs)


def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
    x, outputs = _prepared(operation, inputs)
    gradients = _pulled_back(outputs, x, cotangents)
    loss = sum((pt.constant(t) * g).sum() for t, g in zip(tangents, gradients, strict=True))
    return _evaluated(x, grad(loss, x, disconnected_inputs="ignore"), inputs)


def _prepared(operation: str, inputs: Arrays) -> tuple[list[Any], tuple[Any, ...]]:
    if operation not in FUNCTIONS or any(map(np.iscomplexobj, inputs)):
        raise NotImplementedError
    x = [pt.tensor(dtype=each.dtype.name, shape=each.shape) for each in inputs]
    return x, FUNCTIONS[operation](*x)


def _pulled_back(outputs: tuple[Any, ...], x: list[Any], cotangents: Arrays) -> Any:
    return Lop(list(outputs), x, [pt.constant(each) for each in cotangents])


def _evaluated(x: list[Any], outputs: Sequence[Any], inputs: Arrays) -> Any:
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
    return pytensor.function(x, list(outputs), mode=mode, on_unused_input="ignore")(*inputs)


def version() -> str:
    return f"PyTensor {pytensor.__version__}"
