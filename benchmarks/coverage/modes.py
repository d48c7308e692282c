"""The modes of differentiation in which calls are timed."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from benchmarks.coverage.calls import Call, Functions, Size

Timed = Callable[[], object]
Inputs = tuple[Tensor, ...]
Function = Callable[..., Any]

_OF_ALL_ENTRIES = "jacrev", "jacfwd", "hessian"
"""Whose results have rows to the fourth power as entries."""

_OF_MORE_SIZES = "eager", "no_grad"

_SIZES_OF_THESE = 64, 320
"""Rows that other modes are timed at only if asked for."""


def _outputs(call: Call, functions: Functions) -> Function:
    return lambda *inputs: call.outputs(functions, *inputs)


def _first(call: Call, functions: Functions) -> Function:
    return lambda *inputs: call.outputs(functions, *inputs)[0]


def _loss(call: Call, functions: Functions) -> Function:
    return lambda *inputs: sum(
        each.abs().square().sum() for each in call.outputs(functions, *inputs)
    )


def _leaves(inputs: Inputs) -> Inputs:
    return tuple(each.requires_grad_() for each in inputs)


def _ones(tensors: Inputs) -> Inputs:
    return tuple(map(torch.ones_like, tensors))


def _differentiable(outputs: Inputs) -> Inputs:
    return tuple(each for each in outputs if each.requires_grad)


def _gradient(loss: Function, inputs: Inputs) -> Function:
    return grad(loss, tuple(range(len(inputs))))


def _eager(outputs: Function, inputs: Inputs) -> Timed:
    leaves = _leaves(inputs)
    cotangents = _ones(_differentiable(outputs(*leaves)))
    return lambda: torch.autograd.grad(_differentiable(outputs(*leaves)), leaves, cotangents)


def _double_backward(loss: Function, inputs: Inputs) -> Timed:
    leaves = _leaves(inputs)

    def run() -> object:
        gradients = torch.autograd.grad(loss(*leaves), leaves, create_graph=True)
        return torch.autograd.grad(gradients, leaves, _ones(gradients))

    return run


def _gradient_of_gradient(loss: Function, inputs: Inputs) -> Timed:
    gradient, along = _gradient(loss, inputs), _ones(inputs)
    return lambda: vjp(gradient, *inputs)[1](along)


def _compiled(loss: Function, inputs: Inputs) -> Timed:
    leaves, compiled = _leaves(inputs), torch.compile(loss, fullgraph=True, dynamic=False)
    return lambda: torch.autograd.grad(compiled(*leaves), leaves)


def _compiled_forward(outputs: Function, inputs: Inputs) -> Timed:
    compiled = torch.compile(outputs, fullgraph=True, dynamic=False)
    return torch.no_grad()(lambda: compiled(*inputs))


class Mode(NamedTuple):
    """How a call is timed.

    Args:
        function: of the inputs, which is made of a call and `Functions`.
        timed: what is timed, from that function and inputs.
        samples: over which vmap maps; none where it does not.
    """

    function: Callable[[Call, Functions], Function]
    timed: Callable[[Function, Inputs], Timed]
    samples: tuple[int, ...] = ()


MODES: Mapping[str, Mode] = {
    "eager": Mode(_outputs, _eager),
    "no_grad": Mode(_outputs, lambda f, x: torch.no_grad()(lambda: f(*x))),
    "double backward": Mode(_loss, _double_backward),
    "jvp": Mode(_outputs, lambda f, x: partial(jvp, f, x, _ones(x))),
    "vmap": Mode(_outputs, lambda f, x: partial(vmap(f), *x), (8,)),
    "vmap(grad)": Mode(_loss, lambda f, x: partial(vmap(_gradient(f, x)), *x), (8,)),
    "jacrev": Mode(_first, lambda f, x: partial(jacrev(f), *x)),
    "jacfwd": Mode(_first, lambda f, x: partial(jacfwd(f), *x)),
    "hvp": Mode(_loss, lambda f, x: partial(jvp, _gradient(f, x), x, _ones(x))),
    "vhp": Mode(_loss, _gradient_of_gradient),
    "hessian": Mode(_loss, lambda f, x: partial(hessian(f), *x)),
    "compiled forward": Mode(_outputs, _compiled_forward),
    "compiled": Mode(_loss, _compiled),
}
"""By name. Where not said, forward and backward are timed together."""


def timed(mode: str, call: Call, functions: Functions, size: Size) -> Timed:
    """What is timed of a call in a mode at a size."""
    chosen = MODES[mode]
    inputs = call.inputs(Size(size.n, (*chosen.samples, *size.batch)))
    return chosen.timed(chosen.function(call, functions), inputs)


def applies(mode: str, call: Call, size: Size) -> bool:
    """Whether a call can be timed in a mode at a size."""
    if size.batch:
        return call.takes_batches and mode not in _OF_ALL_ENTRIES
    return mode not in _OF_ALL_ENTRIES or size.n <= 4


def is_usual(mode: str, size: Size) -> bool:
    """Whether a mode is timed at a size unless others are asked for."""
    return mode in _OF_MORE_SIZES or size.n not in _SIZES_OF_THESE
