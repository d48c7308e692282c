"""Directional derivatives by every composition of forward and reverse mode.

A word of f and r says how a derivative is taken, the outermost mode first: "fr" is forward over reverse
mode. All words of one length give the same number.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["DIRECTIONS", "Loss", "derivative"]

Loss = Callable[[Tensor], Tensor]

DIRECTIONS = [
    0.3 * torch.randn(20000, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for seed in range(3)
]


def _forward(loss: Loss, direction: Tensor) -> Loss:
    return lambda x: torch.func.jvp(loss, (x,), (direction[: len(x)].to(x.dtype),))[1]


def _reverse(loss: Loss, direction: Tensor) -> Loss:
    return lambda x: torch.func.grad(loss)(x) @ direction[: len(x)].to(x.dtype)


def _forward_by_vmap(loss: Loss, direction: Tensor) -> Loss:
    return lambda x: torch.func.jacfwd(loss)(x) @ direction[: len(x)].to(x.dtype)


def _reverse_by_vmap(loss: Loss, direction: Tensor) -> Loss:
    return lambda x: torch.func.jacrev(loss)(x) @ direction[: len(x)].to(x.dtype)


def derivative(loss: Loss, word: str, x: Tensor, *, by_vmap: bool) -> Tensor:
    """The derivative along as many directions as the word has letters.

    Args:
        loss: of a vector.
        word: of f and r.
        x: where.
        by_vmap: take it by `jacfwd` and `jacrev`, which map over a basis, in place of `jvp` and `grad`.
    """
    modes = (
        {"f": _forward_by_vmap, "r": _reverse_by_vmap}
        if by_vmap
        else {"f": _forward, "r": _reverse}
    )
    for letter, direction in reversed(list(zip(word, DIRECTIONS, strict=False))):
        loss = modes[letter](loss, direction)
    return loss(x)
