"""Directional derivatives by every composition of forward and reverse mode.

A word of f and r says how a derivative is taken, the outermost mode first: "fr" is forward over reverse
mode. All words of one length give the same number.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Loss = Callable[[Tensor], Tensor]

DIRECTIONS = [
    0.3 * torch.randn(20000, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    for seed in range(3)
]


def words(order: int) -> list[str]:
    """Every composition of that order."""
    return [*map("".join, itertools.product("fr", repeat=order))]


def numbers_of(tensor: Tensor) -> Tensor:
    """The entries as a vector of real numbers."""
    tensor = tensor.resolve_conj().resolve_neg()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).flatten()


def of_numbers(numbers: Tensor, like: Tensor) -> Tensor:
    """The tensor again."""
    if not like.is_complex():
        return numbers.reshape(like.shape)
    return torch.view_as_complex(numbers.reshape(*like.shape, 2))


def over_numbers(
    function: Callable[..., Any], inputs: Sequence[Tensor]
) -> tuple[Callable[[Tensor], Any], Tensor]:
    """The function of the entries of all inputs as one vector of real numbers, and that vector."""
    sizes = [numbers_of(each).numel() for each in inputs]

    def of_vector(numbers: Tensor) -> Any:
        parts = zip(numbers.split(sizes), inputs, strict=True)
        return function(*(of_numbers(part, each) for part, each in parts))

    return of_vector, torch.cat([numbers_of(each.detach()) for each in inputs])


def derivative(
    loss: Loss,
    word: str,
    x: Tensor,
    *,
    by_vmap: bool = False,
    directions: Sequence[Tensor] = DIRECTIONS,
) -> Tensor:
    """The derivative at x along as many directions as the word has letters.

    By vmap it is taken by `jacfwd` and `jacrev`, which map over a basis, in place of `jvp` and `grad`.
    """
    for letter, direction in reversed(list(zip(word, directions, strict=False))):
        loss = _along(loss, letter, direction[: len(x)].to(x.dtype), by_vmap)
    return loss(x)


def _along(loss: Loss, letter: str, v: Tensor, by_vmap: bool) -> Loss:
    if letter == "f" and not by_vmap:
        return lambda x: torch.func.jvp(loss, (x,), (v,))[1]
    by_basis = {"f": torch.func.jacfwd, "r": torch.func.jacrev}[letter]
    jacobian = by_basis if by_vmap else torch.func.grad
    return lambda x: jacobian(loss)(x) @ v
