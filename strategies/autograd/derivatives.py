"""Derivatives of functions in eager mode, inside of operators below what autograd sees of them."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from strategies.autograd.levels import forward_mode, tangent_of
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
    """The derivative of a function, "backward" or "forward", or that of its derivative.

    Args:
        kinds: of the derivatives, the first of them that of the function; of two, one is "backward".
        function: of tensors, in eager mode.
        operands: of the function, and cotangents or tangents for one derivative after the other.
        flags: for each derivative, which operands have gradients, or are given tangents.

    Example:
        >>> at, cotangent = torch.tensor(3.0), torch.tensor(1.0)
        >>> derivative(["backward"], lambda x: (x**2,), [at, cotangent], [[True]])
        (tensor(6.),)
    """
    is_first_gradient = tuple(kinds) == ("backward",)
    # Forward mode writes tangents in the layout of the values, which expanded ones have no room for.
    values = [
        each.detach() if is_first_gradient else each.detach().contiguous() for each in operands
    ]
    count = len(flags[0])
    inputs, given = values[:count], values[count:]
    if tuple(kinds) == ("forward",):
        with forward_level():
            return tangents_of(function(*duals(inputs, spread(given, flags[0]))))
    for each, *needed in zip(inputs, *flags, strict=False):
        each.requires_grad_(any(needed))
    if is_first_gradient:
        return _gradients(function(*inputs), _chosen(inputs, *flags), given)
    if kinds[1] == "forward":
        with forward_level():
            return _tangents_of_gradients(function, inputs, given, *flags)
    return _gradients_of_derivative(kinds, inputs, function(*inputs), given, *flags)


def composed_derivative(
    kinds: Sequence[str], function: Function, flags: Sequence[Sequence[bool]]
) -> Function:
    """`derivative` as a function of the operands, which autograd can differentiate to any order.

    Example:
        >>> cube = composed_derivative(["backward"], lambda x: (x**3,), [[True]])
        >>> cube(torch.tensor(2.0), torch.tensor(1.0))
        (tensor(12.),)
    """
    for kind, needed in zip(kinds, flags, strict=True):
        function = _composed(kind, function, needed)
    return function


def _composed(kind: str, function: Function, needed: Sequence[bool]) -> Function:
    def derived(*operands: Tensor) -> Tensors:
        # Forward mode writes tangents in the layout of the values, which expanded ones have no room for.
        inputs = [each.contiguous() for each in operands[: len(needed)]]
        given, some = operands[len(needed) :], _chosen(inputs, needed)
        of_needed = _of_chosen(function, inputs, needed)
        derivatives: Tensors = (
            torch.func.vjp(of_needed, *some)[1](given)
            if kind == "backward"
            else torch.func.jvp(of_needed, some, given)[1]
        )
        return derivatives

    return derived


def _of_chosen(function: Function, arguments: Sequence[Tensor], flags: Sequence[bool]) -> Function:
    """The function of those arguments that are flagged; the others are as given."""

    def of_chosen(*chosen: Tensor) -> Tensors:
        in_turn, pairs = iter(chosen), zip(arguments, flags, strict=True)
        return function(*[next(in_turn) if flag else each for each, flag in pairs])

    return of_chosen


def _gradients_of_derivative(
    kinds: Sequence[str],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    given: Sequence[Tensor],
    flags: Sequence[bool],
    more: Sequence[bool],
) -> Tensors:
    """By the gradients G of ⟨c, f⟩: the gradient of ⟨c, f' Ȧ⟩ is that of ⟨G, Ȧ⟩ and, by Ȧ, G."""
    arity = len(inputs)
    if kinds[0] == "forward":
        tangents, cotangents = given[: sum(flags)], given[sum(flags) :]
        gradients = _gradients(outputs, _chosen(inputs, flags), cotangents, create_graph=True)
        of_inputs = _gradients(gradients, _chosen(inputs, more[:arity]), tangents)
        return *of_inputs, *_chosen(gradients, more[arity:])
    cotangents, directions = given[: len(more) - arity], given[len(more) - arity :]
    for each in cotangents:
        each.requires_grad_()
    gradients = _gradients(outputs, _chosen(inputs, flags), cotangents, create_graph=True)
    return _gradients(gradients, _chosen([*inputs, *cotangents], more), directions)


def _tangents_of_gradients(
    function: Function,
    inputs: Sequence[Tensor],
    given: Sequence[Tensor],
    flags: Sequence[bool],
    more: Sequence[bool],
) -> Tensors:
    arity = len(inputs)
    count = len(more) - arity
    moved = duals([*inputs, *given[:count]], spread(given[count:], more))
    gradients = _gradients(function(*moved[:arity]), _chosen(inputs, flags), moved[arity:])
    return tangents_of(gradients)


def _chosen(values: Sequence[Tensor], flags: Sequence[bool]) -> Tensors:
    return tuple(itertools.compress(values, flags))


def forward_level() -> contextlib.AbstractContextManager[Any]:
    """A level of forward mode: that around, if there is one, since there can be no other."""
    has_level = forward_ad._current_level >= 0
    return forward_mode(on=True) if has_level else forward_ad.dual_level()


def spread(tensors: Iterable[Tensor | None], flags: Sequence[bool]) -> Gradients:
    """The tensors where the flags are; None elsewhere.

    Example:
        >>> spread([torch.tensor(3.0)], [False, True])
        (None, tensor(3.))
    """
    in_turn = iter(tensors)
    return tuple([next(in_turn) if flag else None for flag in flags])


def duals(values: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> Tensors:
    """The values with tangents, where they have one, in a layout that has room for those.

    Example:
        >>> with forward_ad.dual_level():
        ...     tangents_of(duals([torch.tensor(3.0)], [torch.tensor(1.0)]))
        (tensor(1.),)
    """
    return tuple(
        value if tangent is None else forward_ad.make_dual(value.contiguous(), tangent)
        for value, tangent in itertools.zip_longest(values, tangents)
    )


def tangents_of(outputs: Sequence[Tensor]) -> Tensors:
    """The tangents of the innermost level, zeros where there are none."""
    pairs = [forward_ad.unpack_dual(each) for each in outputs]
    return filled([each.tangent for each in pairs], [each.primal for each in pairs])


def filled(tensors: Iterable[Tensor | None], like: Iterable[Tensor]) -> Tensors:
    """The tensors, with zeros like others for those that are missing.

    Example:
        >>> filled([None, torch.tensor(3.0)], [torch.tensor(1.0), torch.tensor(2.0)])
        (tensor(0.), tensor(3.))
    """
    pairs = zip(tensors, like, strict=True)
    return tuple([torch.zeros_like(of) if each is None else each for each, of in pairs])


def total(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """The sum of two tensors, of which None stands for zero.

    Example:
        >>> total(torch.tensor(3.0), None), total(None, None)
        (tensor(3.), None)
    """
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    create_graph: bool = False,
) -> Tensors:
    """By autograd, which costs less than transforms of torch.func do; zeros where nothing depends."""
    pairs = zip(outputs, cotangents, strict=True)
    recorded = [pair for pair in pairs if pair[0].requires_grad]
    if not (recorded and inputs):
        return tuple(map(torch.zeros_like, inputs))
    some, of_some = zip(*recorded, strict=True)
    return torch.autograd.grad(
        some, inputs, of_some, create_graph=create_graph, materialize_grads=True
    )


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
    return spread(gradients, [need for _, need in pairs])


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

    of_needed = _of_chosen(function, arguments, needed)

    def given_outputs(*values: Tensor) -> Tensors:
        return tuple(itertools.compress(of_needed(*values), is_given))

    used = tuple(itertools.compress(cotangents, is_given))
    return spread(torch.func.vjp(given_outputs, *_chosen(arguments, needed))[1](used), needed)
