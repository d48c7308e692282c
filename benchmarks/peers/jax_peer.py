"""JAX: `jax.numpy.linalg` and `jax.scipy.linalg`, compiled, in the precision of the case."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.peers.process import Work
from strategies import operations
from strategies.measuring.case import Case
from strategies.measuring.measurement import Objective
from strategies.measuring.workload import forward
from strategies.policy import BASELINE


def prepare(case: Case) -> Work:
    """JAX's backward, and forward and backward, of a case.

    Raises:
        NotImplementedError: the operation has no counterpart, or the counterpart no batches.
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # or float64 would silently be float32
    for module in (jax.numpy.linalg, jax.scipy.linalg):
        function = getattr(module, case.operation, None)
        if function is not None:
            return compiled(functools.partial(_first_output, function), case)
    raise NotImplementedError(f"JAX has no {case.operation}")


def compiled(function: Callable[..., Any], case: Case) -> Work:
    """Compiles a function's backward, and its forward and backward, for a case.

    `jax.vjp` under `jit` returns its pullback with the residuals as arrays, so that forward and
    backward are two compiled programs, as they are in PyTorch. Whatever does not depend on the
    cotangent is already in the first, to the peer's advantage. Every call ends synchronized.

    Raises:
        NotImplementedError: the function does not take these inputs, or returns something else.
    """
    import jax

    inputs = tuple(jax.numpy.asarray(a.detach().numpy()) for a in case.inputs())
    try:
        shape = jax.eval_shape(function, *inputs).shape
    except (TypeError, ValueError) as error:
        raise NotImplementedError(str(error)) from error
    expected = operations.get(case.operation).output_shapes(*(a.shape for a in inputs))
    if [tuple(shape)] != [tuple(each) for each in expected]:
        raise NotImplementedError(f"JAX's {case.operation} returns something else first")
    (cotangent,) = (jax.numpy.asarray(c.numpy()) for c in case.cotangents(forward(case, BASELINE)))
    forward_pass = jax.jit(lambda *arguments: jax.vjp(function, *arguments))
    pull = jax.jit(lambda pullback, bar: pullback(bar))
    both = jax.jit(lambda bar, *arguments: jax.vjp(function, *arguments)[1](bar))
    _, pullback = forward_pass(*inputs)
    return {
        Objective.BACKWARD: lambda: jax.block_until_ready(pull(pullback, cotangent)),
        Objective.FORWARD_BACKWARD: lambda: jax.block_until_ready(both(cotangent, *inputs)),
    }


def _first_output(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    return result[0] if isinstance(result, tuple) else result
