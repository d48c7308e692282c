"""Flags, as `upper` and `left`: bools alone, as PyTorch takes them, since any string would be true."""

import inspect
from collections.abc import Callable
from typing import Any

Flags = tuple[tuple[str, int], ...]
"""Names, and places among the positional arguments."""


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


def no_bool(function: str, name: str, value: object) -> TypeError:
    """The error for a flag that is no bool.

    Example:
        >>> no_bool("cholesky", "upper", "lower")
        TypeError('linalg.cholesky: upper must be a bool, not str')
    """
    return TypeError(f"linalg.{function}: {name} must be a bool, not {type(value).__name__}")
