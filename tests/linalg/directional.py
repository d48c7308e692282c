"""A nonlinear loss of an operation, and its directional derivatives by central differences."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from fuzz.derivative import DIRECTIONS, Loss
from operations import function, inputs_of, reference
from torch import Tensor

from strategies.operations import Operation, get

__all__ = ["by_differences", "loss_of"]


def loss_of(operation: Operation, strategy: str | None, dtype: torch.dtype) -> tuple[Loss, Tensor]:
    """A nonlinear loss of a vector of real numbers, and where to differentiate it.

    It has a constant of zero dimensions in it, which forward mode multiplies tangents by.

    Args:
        operation: which.
        strategy: by which; None: PyTorch's own function.
        dtype: of the matrices.
    """
    inputs = [value.detach() for value in inputs_of(operation, (3, 3), (), dtype)]
    call = reference(operation) if strategy is None else function(operation, strategy)
    generator = torch.Generator().manual_seed(1)
    weights = [
        torch.randn(each.shape, dtype=each.dtype, generator=generator) for each in call(*inputs)
    ]
    constant = torch.tensor(0.7, dtype=torch.float64)

    def loss(numbers: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for output, weight in zip(call(*_tensors(numbers, inputs)), weights, strict=True):
            linear = _real((output * weight).sum())
            # Not by the modulus, which has no derivatives at the zeros of a triangular output.
            total = total + constant * linear + constant * _numbers(output).square().sum()
        return total + total * total * constant

    return loss, torch.cat([_numbers(each) for each in inputs])


def _real(number: Tensor) -> Tensor:
    return number.real if number.is_complex() else number


def _numbers(tensor: Tensor) -> Tensor:
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).flatten()


def _tensors(numbers: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    parts = numbers.split([_numbers(each).numel() for each in like])
    shapes = [(*each.shape, 2) if each.is_complex() else each.shape for each in like]
    shaped = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    pairs = zip(shaped, like, strict=True)
    return [torch.view_as_complex(part) if each.is_complex() else part for part, each in pairs]


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
