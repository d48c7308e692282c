"""JAX: `jax.numpy.linalg` and `jax.scipy.linalg`, compiled, in the precision of the case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.worker import Work
from strategies.measuring import Case, forward


def prepare(case: Case) -> Work:
    """JAX's backward, and forward and backward, of a case.

    Raises:
        NotImplementedError: the operation has no counterpart.
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # or float64 would silently be float32
    functions: dict[str, Callable[..., Any]] = {
        "lu_factor": lambda a: jax.scipy.linalg.lu_factor(a)[0],
        "pinv": jax.numpy.linalg.pinv,
        "lstsq": lambda a, b: jax.numpy.linalg.lstsq(a, b)[0],
        "solve": jax.numpy.linalg.solve,
        "inv": jax.numpy.linalg.inv,
        "det": jax.numpy.linalg.det,
    }
    if case.operation not in functions:
        raise NotImplementedError(f"{case.operation} is not compared")
    if case.batch and case.operation == "lstsq":
        raise NotImplementedError("jax.numpy.linalg.lstsq takes one matrix")
    return compiled(functions[case.operation], case)


def compiled(function: Callable[..., Any], case: Case) -> Work:
    """Compiles a function's backward, and its forward and backward, for a case.

    `jax.vjp` under `jit` returns its pullback with the residuals as arrays, so that forward and
    backward are two compiled programs, as they are in PyTorch. Whatever does not depend on the
    cotangent is already in the first, to the peer's advantage. Every call ends synchronized.
    """
    import jax

    inputs = tuple(jax.numpy.asarray(a.detach().numpy()) for a in case.inputs())
    (cotangent,) = (jax.numpy.asarray(c.numpy()) for c in case.cotangents(forward(case, "native")))
    forward_pass = jax.jit(lambda *arguments: jax.vjp(function, *arguments))
    pull = jax.jit(lambda pullback, bar: pullback(bar))
    both = jax.jit(lambda bar, *arguments: jax.vjp(function, *arguments)[1](bar))
    _, pullback = forward_pass(*inputs)
    return Work(
        backward=lambda: jax.block_until_ready(pull(pullback, cotangent)),
        forward_backward=lambda: jax.block_until_ready(both(cotangent, *inputs)),
    )
