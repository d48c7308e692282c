"""JAX: `jax.numpy.linalg` and `jax.scipy.linalg`, compiled, in the precision of the case."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.peers.process import Work
from strategies import operations
from strategies.measuring import Case, Objective, forward
from strategies.policy import BASELINE

Tensors = tuple[Tensor, ...]


def prepare(case: Case) -> Work:
    """JAX's backward, and forward and backward, of a case; NotImplementedError without a counterpart."""
    try:
        return compiled(differentiable(case.operation), case)
    except KeyError as error:
        raise NotImplementedError(f"JAX has no {case.operation}") from error


def compiled(function: Callable[..., tuple[Any, ...]], case: Case) -> Work:
    """Compiles a function's backward, and its forward and backward, for a case.

    `jax.vjp` under `jit` returns its pullback with the residuals as arrays, so that forward and
    backward are two compiled programs, as they are in PyTorch. Whatever does not depend on the
    cotangent is already in the first, to the peer's advantage. Every call ends synchronized.
    NotImplementedError if the function does not take these inputs, or returns something else.
    """
    jax, inputs = _inputs(case)
    try:
        shaped = jax.eval_shape(function, *inputs)
    except (TypeError, ValueError) as error:
        raise NotImplementedError(str(error)) from error
    outputs = forward(case, BASELINE)
    if [each.shape for each in shaped] != [tuple(each.shape) for each in outputs]:
        raise NotImplementedError(f"JAX's {case.operation} returns something else")
    cotangents = tuple(jax.numpy.asarray(c.numpy()) for c in case.cotangents(outputs))
    forward_pass = jax.jit(lambda *arguments: jax.vjp(function, *arguments))
    pull = jax.jit(lambda pullback, bars: pullback(bars))
    both = jax.jit(lambda bars, *arguments: jax.vjp(function, *arguments)[1](bars))
    _, pullback = forward_pass(*inputs)
    return {
        Objective.BACKWARD: lambda: jax.block_until_ready(pull(pullback, cotangents)),
        Objective.FORWARD_BACKWARD: lambda: jax.block_until_ready(both(cotangents, *inputs)),
    }


@functools.cache
def differentiable(operation: str) -> Callable[..., tuple[Any, ...]]:
    """JAX's function, with the outputs that the operation's record names; KeyError if none."""
    import jax.numpy as jnp
    from jax.scipy.linalg import cho_solve

    from strategies.oracle.adapters.jax import FUNCTIONS

    def cholesky_inverse(factor: Any) -> tuple[Any]:
        # A matrix beside a batch of factors were taken for a batch of vectors.
        identity = jnp.broadcast_to(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
        return (cho_solve((factor, True), identity),)

    own: dict[str, Callable[..., tuple[Any, ...]]] = {
        "lstsq": lambda a, b: jnp.linalg.lstsq(a, b)[:1],
        "cholesky_inverse": cholesky_inverse,
    }
    return (FUNCTIONS | own)[operation]


def _inputs(case: Case) -> tuple[Any, tuple[Any, ...]]:
    """JAX, and the inputs of a case as its arrays."""
    import jax

    jax.config.update("jax_enable_x64", True)  # or float64 would silently be float32
    return jax, tuple(jax.numpy.asarray(a.detach().numpy()) for a in case.inputs())


def differentiated(function: Callable[..., tuple[Any, ...]], case: Case) -> tuple[Tensors, Tensors]:
    """Results and gradients of a function of one matrix; of a batch by `jax.vmap`.

    JAX's pullback is the transpose, where PyTorch's is the adjoint: both sides are conjugated. What it
    finds across the domain, as imaginary parts on the diagonal of a Cholesky factor, is no derivative.
    """
    jax, inputs = _inputs(case)
    function = _mapped(function) if case.batch else function
    like = [
        torch.empty(shaped.shape, dtype=getattr(torch, shaped.dtype.name))
        for shaped in jax.eval_shape(function, *inputs)
    ]
    cotangents = tuple(jax.numpy.asarray(c.numpy()) for c in case.cotangents(tuple(like)))
    results, gradients = _forward_backward(function)(inputs, cotangents)
    of_matrix, *others = _as_tensors(gradients)
    part = operations.get(case.operation).domain.part
    return _as_tensors(results), (part(of_matrix), *others)


def pivots_as_torch(case: Case) -> bool:
    """Whether LU swaps the rows as PyTorch does, as far as the rank goes; a tie goes either way."""
    jax, (matrix,) = _inputs(case)
    expected = torch.linalg.lu_factor_ex(case.inputs()[0])[1][..., : case.known_rank]
    found = np.asarray(jax.lax.linalg.lu(matrix)[1])[..., : case.known_rank] + 1
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
