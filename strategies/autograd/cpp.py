"""The fast path in C++ (`strategies.kernels.extension`), where it is there: what it is told, and asked."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from strategies import policy
from strategies.kernels import extension
from strategies.kernels.cpu import task, threads
from strategies.kernels.once import once
from strategies.policy.schema import Policy

Definition = tuple[Callable[..., tuple[Any, ...]], int, int, Callable[..., Any] | None]
"""A fast path: its plans of a choice and inputs, how many of these there are, how many tolerances at most.

And its tangents, from the fields of what a plan has computed and the tangents of inputs.
"""


@once
def module() -> Any:
    """The extension, with what it reads of Python's; None where there is none."""
    if (loaded := extension.load()) is not None:
        words = task.HEADER_WORDS, task.ARGUMENT_WORDS, task.STATUS_WORD, task.FINISHED_WORD
        of_policy = policy.active, policy.override, policy.by_default, Policy
        loaded.set_up(words, threads.WORTH_A_THREAD, task.watchers, of_policy, Parameter)
        for served in _served:
            _add(loaded, *served)
    return loaded


extension.DEPENDENT_CACHES.append(module)

_served: list[tuple[str, list[tuple[Definition, list[Any]]], tuple[Any, ...]]] = []


def fast_path(definition: Definition) -> Callable[..., tuple[Tensor, ...] | None] | None:
    """`FastPath.__call__` without Python; None where there is no extension."""
    return None if (loaded := module()) is None else loaded.fast_path(*definition)


def serve(name: str, fast_paths: list[tuple[Definition, list[Any]]], rest: tuple[Any, ...]) -> None:
    """Compute an operator by fast paths, each for some options, and what else `add_operator` takes."""
    _served.append((name, fast_paths, rest))
    if module.cache_info().currsize and (loaded := module()) is not None:
        _add(loaded, name, fast_paths, rest)


def _add(
    loaded: Any, name: str, fast_paths: list[tuple[Definition, list[Any]]], rest: tuple[Any, ...]
) -> None:
    compiled = [(loaded.fast_path(*definition), usual) for definition, usual in fast_paths]
    loaded.add_operator(name, compiled, *rest)


def aten_operator(*arguments: Any) -> Any:
    """An operator of PyTorch that can be installed, made of what `aten_operator` in C++ takes.

    None where there is no extension.
    """
    return None if (loaded := module()) is None else loaded.AtenOperator(*arguments)


def python_calls(*arguments: Any) -> Callable[..., Any] | None:
    """What computes calls of a public function, of what `python_calls` in C++ takes; None without that."""
    return None if (loaded := module()) is None else loaded.python_calls(*arguments)


def is_ordinary(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether C++ knows that a call sees values, of no half precision, and autograd alone sees the call.

    Example:
        >>> import torch
        >>> is_ordinary((torch.ones(2, device="meta"),), {})
        False
    """
    return (loaded := module()) is not None and loaded.is_ordinary(arguments, options)


def is_transformed(arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Whether C++ knows that autograd and transforms of torch.func alone see a call, likewise.

    Example:
        >>> import torch
        >>> is_transformed((torch.ones(2),), {})
        False
    """
    return (loaded := module()) is not None and loaded.is_transformed(arguments, options)


def used_plan(number: int) -> Any:
    """The plan by which an operator was computed, `FoundPlan`, unless it is forgotten."""
    return None if (loaded := module()) is None else loaded.used(number)


def extreme_norms(matrices: Tensor) -> tuple[float, float] | None:
    """The least and the largest Frobenius norm in a batch, where C++ has them sooner than PyTorch.

    Example:
        >>> import torch
        >>> extreme_norms(torch.ones(2, 2, device="meta"))
    """
    found: tuple[float, float] | None = None
    if (loaded := module()) is not None:
        found = loaded.extreme_norms(matrices)
    return found
