"""`out=`, said once for all operations: PyTorch's own function, which allows no gradient then.

A strategy is a way to differentiate, so with `out=` there is nothing for it to do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import torch

__all__ = ["takes_out", "written"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def written(name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What PyTorch's function of that name writes into `out` and returns.

    Raises:
        RuntimeError: an input requires a gradient; and whatever else PyTorch raises.
        TypeError: PyTorch's function takes no `out=`.

    Example:
        >>> out = torch.empty(1, 1)
        >>> written("inv", [torch.tensor([[4.0]])], {"out": out, "strategy": "auto"}) is out
        True
    """
    function = getattr(torch.linalg, name, None) or getattr(torch, name)
    return function(*arguments, **{key: options[key] for key in options if key != "strategy"})


def takes_out(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, and with `out=` that of PyTorch by its name."""

    @functools.wraps(function)
    def with_out(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        if options.get("out") is not None:
            result: Result = written(function.__name__, arguments, options)
            return result
        options.pop("out", None)
        return function(*arguments, **options)

    return with_out
