"""Marginal likelihood of a Gaussian process."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.jax_programs.model import Model, arrays
from benchmarks.programs import gp


def make(*, points: int) -> Model:
    """As `benchmarks.programs.gp`."""
    import jax.numpy as jnp
    import jax.scipy as jsp

    X, y, log_scales, log_noise = arrays(gp.draw(points=points))

    def objective(parameters: Any) -> Any:
        log_scales, log_noise = parameters
        scaled = X / jnp.exp(log_scales)
        squares = jnp.square(scaled).sum(1, keepdims=True)
        distances = squares + squares.T - 2 * scaled @ scaled.T
        K = jnp.exp(-0.5 * distances) + jnp.exp(log_noise) * jnp.eye(points)
        L = jnp.linalg.cholesky(K)
        whitened = jsp.linalg.solve_triangular(L, y, lower=True)
        logdet = 2 * jnp.log(jnp.diagonal(L)).sum()
        return 0.5 * (jnp.square(whitened).sum() + logdet + points * math.log(2 * math.pi)) / points

    return Model(objective, (log_scales, log_noise), 0.05)
