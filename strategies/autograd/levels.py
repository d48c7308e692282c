"""Levels of forward mode, which nest."""

from __future__ import annotations

from contextlib import AbstractContextManager

from torch import Tensor
from torch.autograd import forward_ad

__all__ = ["all_levels", "no_levels", "without_tangents"]


def all_levels() -> AbstractContextManager[None]:
    """Switches forward mode on in a forward rule, in which PyTorch has it off.

    What the rule computes has no tangents at the levels around its own otherwise, and second derivatives
    by forward over forward mode are zero (PyTorch issue 197867).

    Example:
        >>> with all_levels():
        ...     forward_ad._is_fwd_grad_enabled()
        True
    """
    switch: AbstractContextManager[None] = forward_ad._set_fwd_grad_enabled(True)
    return switch


def no_levels() -> AbstractContextManager[None]:
    """Switches forward mode off for what is computed below all levels.

    Example:
        >>> with no_levels():
        ...     forward_ad._is_fwd_grad_enabled()
        False
    """
    switch: AbstractContextManager[None] = forward_ad._set_fwd_grad_enabled(False)
    return switch


def without_tangents(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Copies without the tangents of the innermost level, for a forward rule of that level.

    The tangents of other levels stay. Views would find the tangents of their bases.
    """
    return tuple(forward_ad.unpack_dual(tensor, level=0).primal.clone() for tensor in tensors)
