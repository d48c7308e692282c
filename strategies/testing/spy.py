"""What is seen of a strategy: its calls, the torch operations within, and the graph behind a result."""

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node
from torch.utils._python_dispatch import TorchDispatchMode

from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.strategy import Saved, Strategy

Observer = Callable[[str, list[Tensor], list[Tensor], Any], None]
"""Is told a method's name, copies of its tensors from before the call, these after it, the result."""


def is_own_method(name: str) -> bool:
    """Whether a name is that of an operation's own method, as "lstsq_backward"."""
    return not name.startswith("_") and name.endswith(("_forward", "_backward"))


def spy_on(strategy: Strategy, observe: Observer) -> Strategy:
    """The same strategy, whose observer is told of every call of a public method."""

    def seen(name: str) -> Callable[..., Any]:
        method = getattr(type(strategy), name)

        @functools.wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            given = list(tensors_in((arguments, tuple(options.values()))))
            before = [tensor.clone() for tensor in given]
            result = method(*arguments, **options)
            observe(name, before, given, result)
            return result

        return call

    names = [n for n in dir(type(strategy)) if n.startswith("factor") or is_own_method(n)]
    same = copy.copy(strategy)
    same.__class__ = type(type(strategy).__name__, (type(strategy),), {n: seen(n) for n in names})
    return same


class TorchSpy(TorchDispatchMode):  # type: ignore[no-untyped-call]  # untyped in torch
    """A mode whose observer is told of every torch operation, by name, with its result."""

    def __init__(self, observe: Callable[[str, Any], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._observe = observe

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        self._observe(str(func.overloadpacket), result)
        return result


def graph_of(value: Any) -> set[Node]:
    """The nodes that autograd recorded for the tensors in a result."""
    found: set[Node] = set()
    ahead = [tensor.grad_fn for tensor in tensors_in(value)]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in found:
            found.add(node)
            ahead += [following for following, _ in node.next_functions]
    return found


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in an argument or a result of a strategy's method."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, PseudoInverse):
        yield from value.tensors()
    elif isinstance(value, Saved):
        yield from tensors_in((value.inverse, value.inputs, value.outputs))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
