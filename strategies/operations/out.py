"""`out=`, said once for all operations: PyTorch's own function, which allows no gradient then.

A strategy is a way to differentiate, so with `out=` there is nothing for it to do.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import torch

from strategies.autograd.half_precision import in_single_precision, is_concerned

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def written(ours: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """What PyTorch's function of the name of ours writes into `out` and returns.

    Operands by name are given by position, since PyTorch has other names for some.

    Raises:
        RuntimeError: an input requires a gradient; and whatever else PyTorch raises.
        TypeError: PyTorch's function takes no `out=`.

    Example:
        >>> out = torch.empty(1, 1)
        >>> from strategies.linalg import inv
        >>> written(inv, [], {"A": torch.tensor([[4.0]]), "out": out, "strategy": "auto"}) is out
        True
    """
    name, rest = ours.__name__, {key: options[key] for key in options if key != "strategy"}
    parameters = list(inspect.signature(ours).parameters.values())[len(arguments) :]
    by_position = [
        rest.pop(each.name)
        for each in parameters
        if each.default is each.empty
        and each.kind is each.POSITIONAL_OR_KEYWORD
        and each.name in rest
    ]
    function = getattr(torch.linalg, name, None) or getattr(torch, name)
    return function(*arguments, *by_position, **rest)


def takes_out(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, and with `out=` that of PyTorch by its name."""

    @functools.wraps(function)
    def with_out(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        if options.get("out") is not None:
            result: Result = written(function, arguments, options)
            return result
        options.pop("out", None)
        if is_concerned(arguments, options):
            return cast(Result, in_single_precision(with_out, arguments, options))
        return function(*arguments, **options)

    return with_out
