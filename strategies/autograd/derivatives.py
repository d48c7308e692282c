"""Derivatives of functions in eager mode, inside of operators below what autograd sees of them."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from strategies.autograd.levels import tangent_of
from strategies.autograd.rule import Gradients, Tensors

Function = Callable[..., Tensors]


@contextlib.contextmanager
def eager_mode(*, grad: bool) -> Iterator[None]:
    """What an operator runs in has no autograd, and if compiled takes conjugate views for the tensors.

    Example:
        >>> with eager_mode(grad=False):
        ...     torch.is_grad_enabled()
        False
    """
    with torch._C._ForceDispatchKeyGuard(*_usual_keys()), torch.set_grad_enabled(grad):
        yield


@functools.cache
def _usual_keys() -> tuple[Any, Any]:
    """What the dispatcher has switched on and off where nothing has changed it: in a new thread."""
    with ThreadPoolExecutor(1) as thread:
        return (
            thread.submit(torch._C._dispatch_tls_local_include_set).result(),
            thread.submit(torch._C._dispatch_tls_local_exclude_set).result(),
        )


def derivative(
    kinds: Sequence[str],
    function: Function,
    operands: Sequence[Tensor],
    flags: Sequence[Sequence[bool]],
) -> Tensors:
    """The derivative of a function, "backward" or "forward", or of its derivative, and so on.

    Args:
        kinds: of the derivatives, the first of them that of the function.
        function: of tensors, in eager mode.
        operands: of the function, and cotangents or tangents for one derivative after the other.
        flags: for each derivative, which operands have gradients, or are given tangents.

    Example:
        >>> at, cotangent = torch.tensor(3.0), torch.tensor(1.0)
        >>> derivative(["backward"], lambda x: (x**2,), [at, cotangent], [[True]])
        (tensor(6.),)
    """
    if tuple(kinds) == ("backward",):
        return _gradients(function, operands, *flags)
    for kind, needed in zip(kinds, flags, strict=True):
        function = {"backward": _pullback, "forward": _pushforward}[kind](function, needed)
    # Forward mode writes tangents in the layout of the values, which expanded ones have no room for.
    return function(*(each.detach().contiguous() for each in operands))


def pulled_back(
    function: Callable[..., Tensors],
    arguments: Tensors,
    cotangents: Gradients,
    needed: Sequence[bool],
) -> Gradients:
    """The gradients of a function; outside of transforms by autograd, since `torch.func.vjp` costs more.

    Args:
        function: of tensors, in differentiable calls.
        arguments: of the function.
        cotangents: of its outputs; None is zero.
        needed: which arguments to give gradients of; the others' are None, and so is one that is zero.

    Example:
        >>> x, y, cotangent = torch.tensor(3.0), torch.tensor(2.0), torch.tensor(1.0)
        >>> pulled_back(lambda x, y: (x * y,), (x, y), (cotangent,), [False, True])
        (None, tensor(3.))
    """
    if torch._C._are_functorch_transforms_active():
        return _pulled_back_by_vjp(function, arguments, cotangents, needed[: len(arguments)])
    has_graph = torch.is_grad_enabled()
    pairs = list(zip(arguments, needed, strict=False))
    with torch.enable_grad():
        # Views, of which none is computed from another, as the arguments may be.
        values = tuple(
            each.view_as(each)
            if has_graph and each.requires_grad
            else _constant(each).requires_grad_(need)
            for each, need in pairs
        )
        outputs = function(*values)
        given = [
            (output, cotangent)
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if cotangent is not None and output.requires_grad
        ]
        if not given:
            return (None,) * len(pairs)
        gradients = torch.autograd.grad(
            [output for output, _ in given],
            [value for value, (_, need) in zip(values, pairs, strict=True) if need],
            [cotangent for _, cotangent in given],
            create_graph=has_graph,
            allow_unused=True,
        )
    found = iter(gradients)
    return tuple(next(found) if need else None for _, need in pairs)


def _constant(tensor: Tensor) -> Tensor:
    """The tensor without its graph, but with its tangent."""
    tangent = None if forward_ad._current_level < 0 else tangent_of(tensor)
    return tensor.detach() if tangent is None else forward_ad.make_dual(tensor.detach(), tangent)


def _pulled_back_by_vjp(
    function: Function, arguments: Tensors, cotangents: Gradients, needed: Sequence[bool]
) -> Gradients:
    """Under transforms, where no graph of autograd can begin."""
    is_given = [each is not None for each in cotangents]
    if not any(is_given):
        return (None,) * len(needed)

    def of_given(*values: Tensor) -> Tensors:
        return tuple(itertools.compress(function(*values), is_given))

    used = cast(Tensors, tuple(itertools.compress(cotangents, is_given)))
    found = iter(_pullback(of_given, needed)(*arguments, *used))
    return tuple(next(found) if need else None for need in needed)


def _gradients(function: Function, operands: Sequence[Tensor], needed: Sequence[bool]) -> Tensors:
    """By autograd, which costs less than transforms of torch.func do."""
    count = len(needed)
    pairs = zip(operands[:count], needed, strict=True)
    inputs = [operand.detach().requires_grad_(need) for operand, need in pairs]
    found = zip(function(*inputs), operands[count:], strict=True)
    outputs, cotangents = zip(*(pair for pair in found if pair[0].requires_grad), strict=True)
    wanted = [each for each in inputs if each.requires_grad]
    return torch.autograd.grad(outputs, wanted, cotangents, materialize_grads=True)


def _pullback(function: Function, needed: Sequence[bool]) -> Function:
    def pulled_back(*operands: Tensor) -> Tensors:
        some, values, cotangents = _of_some(function, needed, operands)
        gradients: Tensors = torch.func.vjp(some, *values)[1](cotangents)
        return gradients

    return pulled_back


def _pushforward(function: Function, needed: Sequence[bool]) -> Function:
    def pushed_forward(*operands: Tensor) -> Tensors:
        some, values, tangents = _of_some(function, needed, operands)
        if forward_ad._current_level < 0:
            results: Tensors = torch.func.jvp(some, values, tangents)[1]
            return results

        # A level of `forward_ad`, in which `torch.func.jvp` does not nest: the transpose of the pullback,
        # which is linear, is the same.
        vjp: Any = torch.func.vjp
        outputs, pullback = vjp(some, *values)
        (transposed,) = vjp(pullback, tuple(map(torch.zeros_like, outputs)))[1](tangents)
        found: Tensors = transposed
        return found

    return pushed_forward


def _of_some(
    function: Function, needed: Sequence[bool], operands: Tensors
) -> tuple[Function, Tensors, Tensors]:
    """A function as one of those operands that are flagged, these, and what else was given."""
    count = len(needed)
    flagged = [i for i, need in enumerate(needed) if need]

    def of_flagged(*values: Tensor) -> Tensors:
        arguments = list(operands[:count])
        for i, value in zip(flagged, values, strict=True):
            arguments[i] = value
        return tuple(function(*arguments))

    return of_flagged, tuple(operands[i] for i in flagged), operands[count:]
