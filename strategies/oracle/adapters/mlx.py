"""MLX on the CPU, which alone has double precision; second derivatives by reverse over reverse mode."""

from collections.abc import Callable, Sequence
from importlib.metadata import version as version_of
from typing import Any

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)

Arrays = Sequence[np.ndarray[Any, Any]]

FUNCTIONS: dict[str, Callable[..., list[Any]]] = {
    "cholesky": lambda A: [mx.linalg.cholesky(A)],
    "cholesky_inverse": lambda L: [mx.linalg.cholesky_inv(L)],
    "det": lambda A: [mx.linalg.det(A)],
    "slogdet": lambda A: [mx.linalg.slogdet(A)[1]],
    "inv": lambda A: [mx.linalg.inv(A)],
    "lu_factor": lambda A: [mx.linalg.lu_factor(A)[0]],
    "lu": lambda A: list(mx.linalg.lu(A)[1:]),
    "pinv": lambda A: [mx.linalg.pinv(A)],
    "solve": lambda A, B: [mx.linalg.solve(A, B)],
}
"""The differentiable outputs of every operation."""


def _function(operation: str) -> Callable[..., list[Any]]:
    attribute = {"cholesky_inverse": "cholesky_inv"}.get(operation, operation)
    if operation not in FUNCTIONS or not hasattr(mx.linalg, attribute):
        raise NotImplementedError
    return FUNCTIONS[operation]


def value(operation: str, inputs: Arrays) -> Any:
    return _arrays(_function(operation)(*_held(inputs)))


def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
    return _arrays(mx.vjp(_function(operation), _held(inputs), _held(cotangents))[1])


def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
    return _arrays(mx.jvp(_function(operation), _held(inputs), _held(tangents))[1])


def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
    def gradients(*x: Any) -> Any:
        return mx.vjp(_function(operation), list(x), _held(cotangents))[1]

    return _arrays(mx.vjp(gradients, _held(inputs), _held(tangents))[1])


def _held(arrays: Arrays) -> list[Any]:
    if any(array.dtype == np.complex128 for array in arrays):
        raise NotImplementedError  # it has single complex numbers only
    return [mx.array(each, dtype=getattr(mx, each.dtype.name)) for each in arrays]


def _arrays(arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    mx.eval(*arrays)
    return [np.array(each) for each in arrays]


def version() -> str:
    return f"MLX {version_of('mlx')}"
