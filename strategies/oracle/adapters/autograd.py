"""HIPS autograd: reverse mode, forward mode where a function has it, and reverse over reverse.

Its pullback is the transpose, where that of the set is the adjoint: both sides are conjugated.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version as version_of
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import make_jvp, make_vjp

Arrays = Sequence[np.ndarray[Any, Any]]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cholesky": anp.linalg.cholesky,
    "det": anp.linalg.det,
    "slogdet": lambda A: anp.linalg.slogdet(A)[1],
    "inv": anp.linalg.inv,
    "pinv": anp.linalg.pinv,
    "solve": anp.linalg.solve,
}
"""Each with one differentiable output."""


def _function(operation: str, inputs: Arrays) -> Callable[[Any], Any]:
    """Of the inputs."""
    if operation not in FUNCTIONS or (operation == "slogdet" and np.iscomplexobj(inputs[0])):
        raise NotImplementedError
    return FUNCTIONS[operation]


def value(operation: str, inputs: Arrays) -> Any:
    return [_function(operation, inputs)(*inputs)]


def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
    return _pulled_back(operation, inputs, cotangents)(*inputs)


def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
    function = _function(operation, inputs)
    # A function of several inputs changes by the sum of what each alone does.
    return [sum(make_jvp(function, i)(*inputs)(tangent)[1] for i, tangent in enumerate(tangents))]


def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
    gradients = _pulled_back(operation, inputs, cotangents)

    def paired(*x: Any) -> Any:
        terms = zip(tangents, gradients(*x), strict=True)
        return sum(anp.real(anp.sum(anp.conj(t) * g)) for t, g in terms)

    return [anp.conj(make_vjp(paired, i)(*inputs)[0](1.0)) for i in range(len(inputs))]


def _pulled_back(operation: str, inputs: Arrays, cotangents: Arrays) -> Callable[..., Any]:
    function = _function(operation, inputs)
    bar = np.conj(cotangents[0])

    def gradients(*x: Any) -> Any:
        return [anp.conj(make_vjp(function, i)(*x)[0](bar)) for i in range(len(x))]

    return gradients


def version() -> str:
    return f"HIPS autograd {version_of('autograd')}"
