"""Slater determinants."""

from __future__ import annotations

from typing import Any

from benchmarks.jax_programs.model import Model, arrays
from benchmarks.programs import slater


def make(*, walkers: int, electrons: int) -> Model:
    """As `benchmarks.programs.slater`."""
    import jax
    import jax.numpy as jnp

    distance, potential, *parameters = arrays(slater.draw(walkers=walkers, electrons=electrons))

    def objective(parameters: Any) -> Any:
        log_exponents, mixing = parameters
        zeta = jnp.exp(log_exponents)
        atomic = jnp.exp(-zeta * distance)
        laplacian = (jnp.square(zeta) - 2 * zeta / distance) * atomic
        orbitals, curvature = atomic @ mixing, laplacian @ mixing
        psi = jnp.linalg.det(orbitals)
        inverse = jnp.linalg.inv(orbitals)
        kinetic = -0.5 * (inverse.mT * curvature).sum((-2, -1))
        weight = jnp.square(psi / jax.lax.stop_gradient(psi))
        local = jnp.clip(kinetic + potential, -1e3, 1e3)
        return (weight * local).mean() / weight.mean()

    return Model(objective, tuple(parameters), 1e-3)
