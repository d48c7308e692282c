"""Whether a call is one to be computed by a function, or one of an operator, and what else sees it."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from strategies.autograd import cpp
from strategies.kernels.memory import is_addressable

_C: Any = torch._C

_TYPE = _C._functorch.TransformType

_GRAD, _JVP, _VMAP, _FUNCTIONALIZE = "GJVF"

_LETTERS = {
    _TYPE.Grad: _GRAD,
    _TYPE.Jvp: _JVP,
    _TYPE.Vmap: _VMAP,
    _TYPE.Functionalize: _FUNCTIONALIZE,
}

_BY_OPERATORS = _GRAD, _JVP + _GRAD, _GRAD + _JVP, _GRAD + _GRAD
"""Levels that differentiate, the outermost first, of which there are operators that are the derivatives."""

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
    return _has_tracing_mode() or (
        _C._are_functorch_transforms_active() and _FUNCTIONALIZE in _levels()
    )


def _has_tracing_mode() -> bool:
    return bool(
        _C._is_tracing()
        or (_C._len_torch_dispatch_stack() and any(map(_C._get_dispatch_mode, _TRACING_MODES)))
    )


def _levels() -> str:
    """The letters of the transforms in force, the outermost first."""
    if (module := cpp.module()) is not None:
        found: str = module.levels()
        return found
    return "".join([_LETTERS[each.key()] for each in _C._functorch.get_interpreter_stack() or ()])


def is_recorded_below(tensors: Iterable[Tensor]) -> bool:
    """Whether reverse mode, or a tracer, sees what is computed of tensors below the level around.

    Example:
        >>> is_recorded_below([torch.ones(2)]), is_recorded_below([torch.ones(2, requires_grad=True)])
        (False, True)
    """
    levels = _levels()
    is_recorded = torch.is_grad_enabled() and any(
        below_transforms(each).requires_grad for each in tensors
    )
    is_seen = _GRAD in levels or _FUNCTIONALIZE in levels
    return is_recorded or is_seen or _has_tracing_mode()


def is_mapped_alone() -> bool:
    """Whether the transforms in force are one `vmap` or more of torch.func, and no other.

    Example:
        >>> torch.vmap(lambda x: x * is_mapped_alone())(torch.ones(2))
        tensor([1., 1.])
    """
    levels = _levels()
    return bool(levels) and not levels.strip(_VMAP) and forward_ad._current_level < 0


has_transforms: Callable[[], bool] = _C._are_functorch_transforms_active
"""Whether transforms of torch.func are in force."""


def is_vmap_innermost() -> bool:
    """Whether there are transforms in force, and a `vmap` is the innermost.

    Example:
        >>> torch.vmap(lambda x: x * is_vmap_innermost())(torch.ones(2))
        tensor([1., 1.])
    """
    return has_transforms() and _levels()[-1] == _VMAP


def orders_by_operators(tensors: Iterable[object]) -> int:
    """Of how many orders derivatives are that torch.func asks for, if operators have them; else none.

    That is one of reverse mode, or two of which one is, with any number of `vmap`; but with none inside of
    reverse mode that is the outer of two.

    Args:
        tensors: what is given; where autograd records one below the transforms, that is one order more.

    Example:
        >>> torch.func.grad(lambda x: x * orders_by_operators([x]))(torch.tensor(3.0))
        tensor(1.)
    """
    if not _C._are_functorch_transforms_active():
        return 0
    levels = _levels()
    if not levels.strip(_VMAP) or forward_ad._current_level >= levels.count(_JVP):
        return 0
    is_recorded = any(
        isinstance(each, Tensor) and below_transforms(each).requires_grad for each in tensors
    )
    return _orders(_GRAD + levels if is_recorded else levels)


@functools.cache
def _orders(levels: str) -> int:
    kinds = levels.replace(_VMAP, "")
    # Of many directions and cotangents, reverse mode would have a matrix for each pair.
    has_vmap_inside = _VMAP in levels.lstrip(_VMAP)
    if len(kinds) > 1 and kinds[0] == _GRAD and has_vmap_inside:
        return 0
    return len(kinds) if kinds in _BY_OPERATORS else 0


def below_transforms(tensor: Tensor) -> Tensor:
    """The tensor that is left of one below all transforms.

    Example:
        >>> torch.vmap(lambda x: x * below_transforms(x).shape[0])(torch.ones(3))
        tensor([3., 3., 3.])
    """
    while _C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _C._functorch.get_unwrapped(tensor)
    return tensor


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


def is_batched(value: object) -> bool:
    """Whether it is a tensor with a value for each sample of a `vmap`, whatever transforms are within.

    Example:
        >>> found = []
        >>> _ = torch.vmap(lambda x: found.append(is_batched(x)) or x)(torch.ones(2))
        >>> found, is_batched(torch.ones(2))
        ([True], False)
    """
    if not (isinstance(value, Tensor) and _C._functorch.is_functorch_wrapped_tensor(value)):
        return False
    is_last = _C._functorch.is_batchedtensor(value)
    return is_last or is_batched(_C._functorch.get_unwrapped(value))


def is_plain() -> bool:
    """Whether nothing but autograd sees what is computed now."""
    return not (
        _C._are_functorch_transforms_active()
        or _C._len_torch_dispatch_stack()
        or _C._len_torch_function_stack()
    )


def is_readable(tensor: Any) -> bool:
    """Whether the numbers are at the address of the tensor, as its strides say."""
    return (
        type(tensor) in _PLAIN
        and (tensor.is_cpu or tensor.is_cuda)
        and is_addressable(tensor)
        # The level is that of all threads.
        and (forward_ad._current_level < 0 or forward_ad.unpack_dual(tensor).tangent is None)
    )


def are_usual(tensors: Sequence[Tensor | None]) -> bool:
    """Whether nothing but autograd sees what is computed now, of tensors whose numbers are readable."""
    return is_plain() and all(map(is_readable, (each for each in tensors if each is not None)))


def resolved(tensor: Tensor) -> Tensor:
    """The tensor, or a copy to which a conjugate or a sign that is pending is applied.

    Example:
        >>> resolved(torch.tensor([1j]).conj()).is_conj()
        False
    """
    if type(tensor) in _PLAIN and (tensor.is_conj() or tensor.is_neg()):
        return tensor.resolve_conj().resolve_neg()
    return tensor


def is_constant(*tensors: Tensor) -> bool:
    """Whether what is computed of these has no derivatives: below all levels, without tangents and graphs.

    Example:
        >>> is_constant(torch.ones(2)), is_constant(torch.ones(2, requires_grad=True))
        (True, False)
    """
    is_recorded = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    return not is_recorded and are_usual(tensors)
