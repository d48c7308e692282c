"""Extreme learning machine."""

from __future__ import annotations

from typing import Any

from benchmarks.jax_programs.model import Model, arrays
from benchmarks.programs import elm


def make(*, samples: int, hidden: int) -> Model:
    """As `benchmarks.programs.elm`."""
    import jax.numpy as jnp

    X, Y, weights, biases = arrays(elm.draw(samples=samples, hidden=hidden))

    def objective(parameters: Any) -> Any:
        weights, biases = parameters
        H = jnp.tanh(X @ weights + biases)
        readout = jnp.linalg.pinv(H[:samples]) @ Y[:samples]
        return jnp.square(H[samples:] @ readout - Y[samples:]).mean()

    return Model(objective, (weights, biases), 1e-2)
