"""TensorFlow: gradient tapes, its forward accumulator, and second derivatives by both."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Arrays = Sequence[np.ndarray[Any, Any]]


def _slogdet(A: Any) -> tuple[Any, ...]:
    """The sign of a real determinant has no derivative."""
    sign, logabsdet = tf.linalg.slogdet(A)
    return (sign, tf.math.real(logabsdet)) if A.dtype.is_complex else (logabsdet,)


FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cholesky": lambda A: (tf.linalg.cholesky(A),),
    "cholesky_solve": lambda L, B: (tf.linalg.cholesky_solve(L, B),),
    "det": lambda A: (tf.linalg.det(A),),
    "slogdet": _slogdet,
    "inv": lambda A: (tf.linalg.inv(A),),
    "lstsq": lambda A, B: (tf.linalg.lstsq(A, B),),
    "lu_factor": lambda A: (tf.linalg.lu(A)[0],),
    "pinv": lambda A: (tf.linalg.pinv(A),),
    "solve": lambda A, B: (tf.linalg.solve(A, B),),
}
"""The differentiable outputs of every operation."""


def _function(operation: str) -> Callable[..., tuple[Any, ...]]:
    if operation not in FUNCTIONS:
        raise NotImplementedError
    return FUNCTIONS[operation]


def value(operation: str, inputs: Arrays) -> Any:
    return _arrays(_function(operation)(*_tensors(inputs)))


def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
    x = _tensors(inputs)
    return _arrays(_pulled_back(operation, x, cotangents), x)


def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
    x = _tensors(inputs)
    with tf.autodiff.ForwardAccumulator(x, _tensors(tangents)) as forward:
        outputs = _function(operation)(*x)
    return _arrays(forward.jvp(outputs), outputs)


def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
    x = _tensors(inputs)
    with tf.GradientTape() as tape:
        tape.watch(x)
        gradients = _pulled_back(operation, x, cotangents)
    return _arrays(tape.gradient(gradients, x, output_gradients=_tensors(tangents)), x)


def hvp__forward_over_reverse(
    operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays
) -> Any:
    x = _tensors(inputs)
    with tf.autodiff.ForwardAccumulator(x, _tensors(tangents)) as forward:
        gradients = _pulled_back(operation, x, cotangents)
    return _arrays(forward.jvp(gradients), x)


def _pulled_back(operation: str, x: list[Any], cotangents: Arrays) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = _function(operation)(*x)
    return tape.gradient(outputs, x, output_gradients=_tensors(cotangents))


def _tensors(arrays: Arrays) -> list[Any]:
    return [tf.constant(each) for each in arrays]


def _arrays(tensors: Sequence[Any], like: Sequence[Any] = ()) -> list[np.ndarray[Any, Any]]:
    """None, which stands for zero, is filled in."""
    pairs = itertools.zip_longest(tensors, like)
    return [np.asarray(tf.zeros_like(other) if each is None else each) for each, other in pairs]


def version() -> str:
    return f"TensorFlow {tf.__version__}"
