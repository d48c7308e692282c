"""JAX; second derivatives by forward over reverse mode.

Its pullback is the transpose, where that of the set is the adjoint: both sides are conjugated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

Arrays = Sequence[np.ndarray[Any, Any]]
Function = Callable[..., tuple[Any, ...]]


def _lstsq(A: Any, B: Any) -> tuple[Any]:
    def solve(A: Any, B: Any) -> Any:
        return jnp.linalg.lstsq(A, B)[0]

    return ((jax.vmap(solve) if A.ndim == 3 else solve)(A, B),)


FUNCTIONS: dict[str, Function] = {
    "cholesky": lambda A: (jnp.linalg.cholesky(A),),
    "cholesky_solve": lambda L, B: (jax.scipy.linalg.cho_solve((L, True), B),),
    "det": lambda A: (jnp.linalg.det(A),),
    # The sign of a real determinant has no derivative.
    "slogdet": lambda A: tuple(jnp.linalg.slogdet(A))[0 if jnp.iscomplexobj(A) else 1 :],
    "inv": lambda A: (jnp.linalg.inv(A),),
    "lstsq": _lstsq,
    "lu_factor": lambda A: jax.scipy.linalg.lu_factor(A)[:1],
    "lu": lambda A: jax.scipy.linalg.lu(A)[1:],
    "pinv": lambda A: (jnp.linalg.pinv(A),),
    "solve": lambda A, B: (jnp.linalg.solve(A, B),),
}
"""The differentiable outputs of every operation."""


def derivatives(known: Mapping[str, Function]) -> dict[str, Callable[..., Any]]:
    """The functions of an adapter."""

    def function(operation: str) -> Function:
        if operation not in known:
            raise NotImplementedError
        return known[operation]

    def pulled_back(operation: str, cotangents: Arrays, *x: Any) -> Any:
        bars = tuple(jnp.conj(each) for each in cotangents)
        return [jnp.conj(each) for each in jax.vjp(function(operation), *x)[1](bars)]

    def value(operation: str, inputs: Arrays) -> Any:
        return function(operation)(*inputs)

    def vjp(operation: str, inputs: Arrays, cotangents: Arrays) -> Any:
        return pulled_back(operation, cotangents, *inputs)

    def jvp(operation: str, inputs: Arrays, tangents: Arrays) -> Any:
        return jax.jvp(function(operation), tuple(inputs), tuple(tangents))[1]

    def hvp(operation: str, inputs: Arrays, cotangents: Arrays, tangents: Arrays) -> Any:
        def gradients(*x: Any) -> Any:
            return pulled_back(operation, cotangents, *x)

        return jax.jvp(gradients, tuple(inputs), tuple(tangents))[1]

    return {function.__name__: function for function in (value, vjp, jvp, hvp)}


def version() -> str:
    return f"JAX {jax.__version__}"


globals().update(derivatives(FUNCTIONS))
