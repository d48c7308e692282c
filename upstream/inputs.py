"""What the cases of several patches are made of."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from strategies.measuring.work import work_of

Result = TypeVar("Result")


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers that the shape determines, as an input of a gradient."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator, requires_grad=True)


def deficient(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function of A = C D as one of C and D, along which the rank is kept."""
    return lambda C, D, *others: function(C @ D, *others)


def operations(
    function: Callable[..., Tensor], unit: float, A: Tensor, *others: Tensor
) -> Callable[[], float]:
    """What counts the floating-point operations of the gradient of A, in a unit."""

    def counted() -> float:
        output = function(A, *others)
        backward = work_of(lambda: torch.autograd.grad(output, A, torch.ones_like(output)))
        return backward.flops / unit

    return counted


def relative_error(computed: Tensor, exact: Tensor) -> float:
    """‖computed − exact‖_F / ‖exact‖_F."""
    return float((computed - exact).norm() / exact.norm())
