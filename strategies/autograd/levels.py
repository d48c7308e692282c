"""Levels of forward mode, which nest."""

from contextlib import AbstractContextManager

from torch import Tensor
from torch.autograd import forward_ad

from strategies.kernels import extension


def forward_mode(*, on: bool) -> AbstractContextManager[None]:
    """Switches forward mode on in a forward rule, in which PyTorch has it off, or off below all levels.

    What a rule computes has no tangents at the levels around its own otherwise, and second derivatives by
    forward over forward mode are zero (PyTorch issue 197867).

    Example:
        >>> with forward_mode(on=False):
        ...     forward_ad._is_fwd_grad_enabled()
        False
    """
    switch: AbstractContextManager[None] = forward_ad._set_fwd_grad_enabled(on)
    return switch


def tangent_of(tensor: Tensor) -> Tensor | None:
    """The tangent of the innermost level, if there is one.

    Example:
        >>> import torch
        >>> with forward_ad.dual_level():
        ...     tangent_of(forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0)))
        tensor(1.)
    """
    if (module := extension.load()) is not None:
        found: Tensor | None = module.tangent(tensor)
        return found
    return forward_ad.unpack_dual(tensor).tangent


def with_tangent(tensor: Tensor, tangent: Tensor) -> Tensor:
    """A tensor that nothing else holds, with a tangent of the innermost level.

    `forward_ad` asks the dispatcher for that, which under torch.func comes back to Python.

    Example:
        >>> import torch
        >>> with forward_ad.dual_level():
        ...     tangent_of(with_tangent(torch.tensor(3.0), torch.tensor(1.0)))
        tensor(1.)
    """
    if (module := extension.load()) is not None:
        module.set_tangent(tensor, tangent)
        return tensor
    return forward_ad.make_dual(tensor, tangent)
