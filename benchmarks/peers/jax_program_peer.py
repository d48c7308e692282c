"""JAX, in training: some of the programs once more, which draw the same numbers and train by Adam.

Every step is one compiled program.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.peers.process import Work
from benchmarks.programs import elm, gp, slater, varpro

LOSSES, STEP = "losses", "step"

_COMPARED = 3
"""Losses that say whether the steps are the same."""


class Model(NamedTuple):
    """A program: from the parameters to the loss, the parameters to begin with, and Adam's rate."""

    objective: Callable[..., Any]
    parameters: tuple[Any, ...]
    rate: float


def prepare(program: tuple[str, Mapping[str, int]]) -> Work:
    """The first losses, and the second step, which takes as long as any other.

    The program is given by its name and its sizes.
    """
    import jax
    from jax.example_libraries.optimizers import adam

    name, sizes = program
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = MODELS[name](**sizes)
    begin, update, parameters_of = adam(model.rate)

    def stepped(number: int, state: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(model.objective)(parameters_of(state))
        return loss, update(number, gradients, state)

    step = jax.jit(stepped)
    first = begin(model.parameters)
    _, second = step(0, first)

    def losses() -> list[Any]:
        state, found = first, []
        for number in range(_COMPARED):
            loss, state = step(number, state)
            found.append(loss)
        return found

    return {LOSSES: losses, STEP: lambda: jax.block_until_ready(step(1, second))}


def _arrays(tensors: Iterable[Tensor]) -> Any:
    """Of JAX, in double precision where the tensors are."""
    import jax

    jax.config.update("jax_enable_x64", True)  # or they would silently be single
    return tuple(jax.numpy.asarray(each.numpy()) for each in tensors)


def _elm(*, samples: int, hidden: int) -> Model:
    import jax.numpy as jnp

    X, Y, *parameters = _arrays(elm.draw(samples=samples, hidden=hidden))

    def objective(parameters: Any) -> Any:
        weights, biases = parameters
        H = jnp.tanh(X @ weights + biases)
        readout = jnp.linalg.pinv(H[:samples]) @ Y[:samples]
        return jnp.square(H[samples:] @ readout - Y[samples:]).mean()

    return Model(objective, tuple(parameters), 1e-2)


def _gp(*, points: int) -> Model:
    import jax.numpy as jnp
    import jax.scipy as jsp

    X, y, *parameters = _arrays(gp.draw(points=points))

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

    return Model(objective, tuple(parameters), 0.05)


def _slater(*, walkers: int, electrons: int) -> Model:
    import jax
    import jax.numpy as jnp

    distance, potential, *parameters = _arrays(slater.draw(walkers=walkers, electrons=electrons))

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


def _varpro(*, times: int, decays: int, curves: int) -> Model:
    import jax.numpy as jnp

    time, data, *parameters = _arrays(varpro.draw(times=times, decays=decays, curves=curves))

    def objective(parameters: Any) -> Any:
        (log_rates,) = parameters
        basis = jnp.exp(-time[:, None] * jnp.exp(log_rates))
        amplitudes = jnp.linalg.lstsq(basis[::2], data[::2])[0]
        errors = basis[1::2] @ amplitudes - data[1::2]
        return jnp.log(jnp.square(errors).sum(0) + 1e-14).mean()

    return Model(objective, tuple(parameters), 5e-3)


MODELS: Mapping[str, Callable[..., Model]] = {
    "elm": _elm,
    "gp": _gp,
    "slater": _slater,
    "varpro": _varpro,
}
"""By the names of the programs of `benchmarks.programs`."""
