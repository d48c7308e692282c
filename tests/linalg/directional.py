"""A nonlinear loss of an operation, and its directional derivatives by central differences."""

import functools

import torch
from comparison import drawn
from fuzz.derivative import DIRECTIONS, Loss, numbers_of, over_numbers
from operations import function, inputs_of, reference
from torch import Tensor

from strategies.operations import Operation, get


def loss_of(operation: Operation, strategy: str | None, dtype: torch.dtype) -> tuple[Loss, Tensor]:
    """A nonlinear loss of a vector of real numbers, and where to differentiate it.

    It is of PyTorch's own function if by no strategy. It has a constant of zero dimensions in it, which
    forward mode multiplies tangents by.
    """
    inputs = [value.detach() for value in inputs_of(operation, (3, 3), (), dtype)]
    call = reference(operation) if strategy is None else function(operation, strategy)
    weights = [
        drawn(*each.shape, dtype=each.dtype, seed=i + 1) for i, each in enumerate(call(*inputs))
    ]
    of_vector, x = over_numbers(call, inputs)
    constant = torch.tensor(0.7, dtype=torch.float64)

    def loss(numbers: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for output, weight in zip(of_vector(numbers), weights, strict=True):
            linear = torch.real((output * weight).sum())
            # Not by the modulus, which has no derivatives at the zeros of a triangular output.
            total = total + constant * linear + constant * numbers_of(output).square().sum()
        return total + total * total * constant

    return loss, x


@functools.cache
def by_differences(name: str, dtype: torch.dtype, order: int) -> Tensor:
    """The same by central differences of gradients in reverse mode, of PyTorch's own function."""
    loss, x = loss_of(get(name), None, dtype)

    def gradient(y: Tensor) -> Tensor:
        leaf = y.clone().requires_grad_()
        return torch.autograd.grad(loss(leaf), leaf)[0] @ DIRECTIONS[order - 1][: len(y)]

    found = gradient
    for direction in DIRECTIONS[: order - 1]:
        found = _differences(found, direction[: len(x)])
    return found(x)


def _differences(values: Loss, direction: Tensor, step: float = 3e-3) -> Loss:
    """Of fourth order."""
    near, far = step * direction, 2 * step * direction
    return lambda y: (
        (8 * (values(y + near) - values(y - near)) - (values(y + far) - values(y - far)))
        / (12 * step)
    )
