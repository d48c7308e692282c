"""The modes of differentiation in which calls are timed."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from benchmarks.coverage.calls import Call, Functions, Size

Timed = Callable[[], object]

_MAPPED = 8
"""Samples over which vmap maps."""

_MOST_ROWS = {"jacrev": 4, "jacfwd": 4, "hessian": 4}
"""Whose results have rows to the fourth power as entries."""


def _leaves(call: Call, size: Size) -> tuple[Tensor, ...]:
    return tuple(each.requires_grad_() for each in call.inputs(size))


def _cotangents(outputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [torch.ones_like(each) for each in outputs]


def _differentiable(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(each for each in outputs if each.requires_grad)


def _loss(call: Call, functions: Functions) -> Callable[..., Tensor]:
    def loss(*inputs: Tensor) -> Tensor:
        outputs = call.outputs(functions, *inputs)
        total: Any = sum(each.abs().square().sum() for each in outputs)
        return total

    return loss


def _no_grad(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(size)
    return torch.no_grad()(lambda: call.outputs(functions, *inputs))


def _eager(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = _leaves(call, size)
    cotangents = _cotangents(_differentiable(call.outputs(functions, *inputs)))

    def run() -> object:
        outputs = _differentiable(call.outputs(functions, *inputs))
        return torch.autograd.grad(outputs, inputs, cotangents)

    return run


def _double_backward(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = _leaves(call, size)
    loss = _loss(call, functions)

    def run() -> object:
        gradients = torch.autograd.grad(loss(*inputs), inputs, create_graph=True)
        return torch.autograd.grad(gradients, inputs, _cotangents(gradients))

    return run


def _jvp(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(size)
    tangents = tuple(map(torch.ones_like, inputs))
    return lambda: torch.func.jvp(lambda *given: call.outputs(functions, *given), inputs, tangents)


def _vmap(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(Size(size.n, (_MAPPED, *size.batch)))
    mapped = torch.func.vmap(lambda *given: call.outputs(functions, *given))
    return lambda: mapped(*inputs)


def _vmap_of_grad(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(Size(size.n, (_MAPPED, *size.batch)))
    everything = tuple(range(len(inputs)))
    mapped = torch.func.vmap(torch.func.grad(_loss(call, functions), everything))
    return lambda: mapped(*inputs)


def _jacobian(transform: Callable[..., Any]) -> Callable[[Call, Functions, Size], Timed]:
    def timed(call: Call, functions: Functions, size: Size) -> Timed:
        inputs = call.inputs(size)
        jacobian = transform(lambda *given: call.outputs(functions, *given)[0])
        return lambda: jacobian(*inputs)

    return timed


def _hvp(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(size)
    tangents = tuple(map(torch.ones_like, inputs))
    gradient = torch.func.grad(_loss(call, functions), tuple(range(len(inputs))))
    return lambda: torch.func.jvp(gradient, inputs, tangents)


def _hessian(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(size)
    hessian = torch.func.hessian(_loss(call, functions))
    return lambda: hessian(*inputs)


def _compiled_forward(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = call.inputs(size)
    compiled = torch.compile(
        lambda *given: call.outputs(functions, *given), fullgraph=True, dynamic=False
    )
    return torch.no_grad()(lambda: compiled(*inputs))


def _compiled(call: Call, functions: Functions, size: Size) -> Timed:
    inputs = _leaves(call, size)
    compiled = torch.compile(_loss(call, functions), fullgraph=True, dynamic=False)
    return lambda: torch.autograd.grad(compiled(*inputs), inputs)


MODES: Mapping[str, Callable[[Call, Functions, Size], Timed]] = {
    "eager": _eager,
    "no_grad": _no_grad,
    "double backward": _double_backward,
    "jvp": _jvp,
    "vmap": _vmap,
    "vmap(grad)": _vmap_of_grad,
    "jacrev": _jacobian(torch.func.jacrev),
    "jacfwd": _jacobian(torch.func.jacfwd),
    "hvp": _hvp,
    "hessian": _hessian,
    "compiled forward": _compiled_forward,
    "compiled": _compiled,
}
"""By name: what is timed of a call at a size. Where not said, forward and backward together."""


def applies(mode: str, call: Call, size: Size) -> bool:
    """Whether a call is timed in a mode at a size."""
    if size.batch and not call.takes_batches:
        return False
    most = _MOST_ROWS.get(mode)
    return most is None or (not size.batch and size.n <= most)
