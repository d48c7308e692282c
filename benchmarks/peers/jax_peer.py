"""JAX: `jax.numpy.linalg` and `jax.scipy.linalg`, compiled, in the precision of the case."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.peers.process import Work
from strategies import operations
from strategies.measuring.case import Case
from strategies.measuring.measurement import Objective
from strategies.measuring.workload import forward
from strategies.policy import BASELINE

Tensors = tuple[Tensor, ...]


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


@functools.cache
def differentiable(operation: str) -> Callable[..., tuple[Any, ...]]:
    """JAX's function for one matrix, with the differentiable outputs that the operation's record names."""
    import jax

    if operation == "lu_factor":
        return lambda a: jax.scipy.linalg.lu_factor(a)[:1]
    if operation == "lu":
        return lambda a: jax.scipy.linalg.lu(a)[1:]
    if operation == "lstsq":
        return lambda a, b: jax.numpy.linalg.lstsq(a, b)[:1]
    if operation == "slogdet":
        return lambda a: jax.numpy.linalg.slogdet(a)[0 if jax.numpy.iscomplexobj(a) else 1 :]
    function = getattr(jax.numpy.linalg, operation)
    return lambda *inputs: (function(*inputs),)


def differentiated(function: Callable[..., tuple[Any, ...]], case: Case) -> tuple[Tensors, Tensors]:
    """Results and gradients of a function of one matrix; of a batch by `jax.vmap`.

    JAX's pullback is the transpose, where PyTorch's is the adjoint: both sides are conjugated.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    function = _mapped(function) if case.batch else function
    inputs = tuple(jax.numpy.asarray(a.detach().numpy()) for a in case.inputs())
    like = [
        torch.empty(shaped.shape, dtype=getattr(torch, shaped.dtype.name))
        for shaped in jax.eval_shape(function, *inputs)
    ]
    cotangents = tuple(jax.numpy.asarray(c.numpy()) for c in case.cotangents(tuple(like)))
    results, gradients = _forward_backward(function)(inputs, cotangents)
    return _as_tensors(results), _as_tensors(gradients)


def pivots_as_torch(case: Case) -> bool:
    """Whether LU swaps the rows as PyTorch does, as far as the rank goes; a tie goes either way."""
    import jax

    jax.config.update("jax_enable_x64", True)
    matrix = case.inputs()[0].detach()
    expected = torch.linalg.lu_factor_ex(matrix)[1][..., : case.known_rank]
    found = np.asarray(jax.lax.linalg.lu(matrix.numpy())[1])[..., : case.known_rank] + 1
    return bool((found == expected.numpy()).all())


@functools.cache
def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    return jax.vmap(function)


@functools.cache
def _forward_backward(function: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    def run(inputs: Any, cotangents: Any) -> Any:
        results, pullback = jax.vjp(function, *inputs)
        conjugated = jax.tree.map(jax.numpy.conj, cotangents)
        return results, jax.tree.map(jax.numpy.conj, pullback(conjugated))

    return jax.jit(run)


def _as_tensors(arrays: Any) -> Tensors:
    return tuple(torch.tensor(np.asarray(array)) for array in arrays)


def _first_output(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    return result[0] if isinstance(result, tuple) else result
