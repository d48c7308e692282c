"""The functions that are recorded, and how a program writes them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_compiling
from torch.overrides import handle_torch_function

from strategies import linalg
from strategies.integration import replacement

__all__ = ["visible_to_modes", "written"]

_C: Any = torch._C

_OURS: dict[str, Callable[..., Any]] = {
    function.name: getattr(linalg, function.name) for function in replacement.functions()
}


@functools.cache
def written() -> dict[Callable[..., Any], str]:
    """How a program writes each function that a mode may be given."""
    found: dict[Callable[..., Any], str] = {}
    for function in replacement.functions():
        found[function.original] = found[function.replaced] = str(function)
    return found | {seen: f"{linalg.__name__}.{name}" for name, seen in _visible().items()}


_lock = threading.Lock()
_recordings: list[None] = []


@contextlib.contextmanager
def visible_to_modes() -> Iterator[None]:
    """Shows modes the calls of `strategies.linalg`, and not what these are made of."""
    with _lock:
        if not _recordings:
            vars(linalg).update(_visible())
        _recordings.append(None)
    try:
        yield
    finally:
        with _lock:
            _recordings.pop()
            if not _recordings:
                vars(linalg).update(_OURS)


@functools.cache
def _visible() -> dict[str, Callable[..., Any]]:
    return {name: _overridable(function) for name, function in _OURS.items()}


def _overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, as a mode is given it; called by the mode, it is there for the next one."""

    @functools.wraps(function)
    def overridable(*arguments: Any, **options: Any) -> Any:
        if is_compiling() or not _C._is_torch_function_mode_enabled():
            return function(*arguments, **options)
        return handle_torch_function(overridable, (), *arguments, **options)

    return overridable
