"""Variable projection."""

from __future__ import annotations

from typing import Any

from benchmarks.jax_programs.model import Model, arrays
from benchmarks.programs import varpro


def make(*, times: int, decays: int, curves: int) -> Model:
    """As `benchmarks.programs.varpro`."""
    import jax.numpy as jnp

    time, data, log_rates = arrays(varpro.draw(times=times, decays=decays, curves=curves))

    def objective(parameters: Any) -> Any:
        (log_rates,) = parameters
        basis = jnp.exp(-time[:, None] * jnp.exp(log_rates))
        amplitudes = jnp.linalg.lstsq(basis[::2], data[::2])[0]
        errors = basis[1::2] @ amplitudes - data[1::2]
        return jnp.log(jnp.square(errors).sum(0) + 1e-14).mean()

    return Model(objective, (log_rates,), 5e-3)
