"""What the cases of several patches are made of."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers that the shape determines, as an input of a gradient."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator, requires_grad=True)


def deficient(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function of A = C D as one of C and D, along which the rank is kept."""
    return lambda C, D, *others: function(C @ D, *others)


def relative_error(computed: Tensor, exact: Tensor) -> float:
    """‖computed − exact‖_F / ‖exact‖_F."""
    return float((computed - exact).norm() / exact.norm())
