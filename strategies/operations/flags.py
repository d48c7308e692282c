"""Flags, as `upper` and `left`: bools alone, as PyTorch takes them, since any string would be true."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Flags = tuple[tuple[str, int], ...]
"""Names, and places among the positional arguments."""

_BOOLS = bool, np.bool_, torch.SymBool


def flags_of(function: Callable[..., Any]) -> Flags:
    """The parameters that are annotated as bool.

    Example:
        >>> def f(A, upper: bool = False, *, left: bool = True): ...
        >>> flags_of(f)
        (('upper', 1), ('left', 2))
    """
    parameters = inspect.signature(function).parameters.values()
    # Annotations are strings where their module postpones them.
    return tuple(
        (each.name, i) for i, each in enumerate(parameters) if each.annotation in (bool, "bool")
    )


def check_flag(function: str, name: str, value: object) -> None:
    """Raise TypeError for a flag that is no bool, of NumPy or of a graph either.

    Example:
        >>> check_flag("cholesky", "upper", "lower")
        Traceback (most recent call last):
        TypeError: linalg.cholesky: upper must be a bool, not str
    """
    if not isinstance(value, _BOOLS):
        raise TypeError(f"linalg.{function}: {name} must be a bool, not {type(value).__name__}")
