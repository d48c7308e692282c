"""Whether a call is one to be computed, or one to be recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

__all__ = ["has_no_values", "is_traced", "special"]

_C: Any = torch._C

_PLAIN = Tensor, Parameter

_TRACING_MODES = tuple(
    getattr(_C._TorchDispatchModeKey, name) for name in ("PROXY", "FUNCTIONAL", "FAKE")
)


def is_traced() -> bool:
    """Whether a tracer of operators records what is computed now, or `functionalize` rewrites it.

    That is `torch.jit.trace`, `make_fx`, `torch.func.linearize`, and whatever else is made of these. What a
    kernel writes they do not see: its results would be constants of the graph.

    Example:
        >>> is_traced()
        False
    """
    return bool(
        _C._is_tracing()
        or (_C._len_torch_dispatch_stack() and any(map(_C._get_dispatch_mode, _TRACING_MODES)))
        or (_C._are_functorch_transforms_active() and _is_functionalized())
    )


def _is_functionalized() -> bool:
    functionalize = _C._functorch.TransformType.Functionalize
    return any(each.key() == functionalize for each in _C._functorch.get_interpreter_stack() or ())


def special(values: Iterable[object]) -> list[Tensor]:
    """The tensors without values, or of types that may define what functions or operators do.

    Example:
        >>> special([torch.ones(1), 2.0, torch.ones(1, device="meta")])
        [tensor(..., device='meta', size=(1,))]
    """
    return [
        value
        for value in values
        if isinstance(value, Tensor) and (type(value) not in _PLAIN or value.is_meta)
    ]


def has_no_values(tensor: Tensor) -> bool:
    """Whether a special tensor is a meta tensor, or dispatches in Python, so that it may have no memory.

    Example:
        >>> has_no_values(torch.ones(1, device="meta"))
        True
    """
    return tensor.is_meta or bool(_C._dispatch_keys(tensor).has(_C.DispatchKey.Python))
