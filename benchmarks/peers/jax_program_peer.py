"""JAX, in training: `benchmarks.jax_programs`."""

from __future__ import annotations

from benchmarks.jax_programs import MODELS, model
from benchmarks.peers.process import Work
from benchmarks.programs import named


def prepare(program: tuple[str, str]) -> Work:
    """The losses and a step of a program, given by its name and that of the size.

    Raises:
        NotImplementedError: it is not written in JAX.
    """
    name, size = program
    if name not in MODELS:
        raise NotImplementedError(f"{name} is not written in JAX")
    return model.work(MODELS[name], dict(named(name).sizes[size]))
