"""What JAX trains, and how: every step is one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.peers.process import Work

__all__ = ["LOSSES", "STEP", "Model", "arrays", "work"]

LOSSES, STEP = "losses", "step"

_COMPARED = 3
"""Losses that say whether the steps are the same."""


class Model(NamedTuple):
    """A program.

    Attributes:
        objective: from the parameters to the loss.
        parameters: to begin with.
        rate: Adam's; its other numbers are as in PyTorch.
    """

    objective: Callable[..., Any]
    parameters: tuple[Any, ...]
    rate: float


def arrays(tensors: Iterable[Tensor]) -> Any:
    """Of JAX, in double precision where the tensors are."""
    import jax

    jax.config.update("jax_enable_x64", True)  # or they would silently be single
    return tuple(jax.numpy.asarray(each.numpy()) for each in tensors)


def work(make: Callable[..., Model], sizes: dict[str, int]) -> Work:
    """The first losses, and the second step: it takes as long as any other."""
    import jax
    from jax.example_libraries.optimizers import adam

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make(**sizes)
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
