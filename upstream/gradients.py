"""The check of a derivative, in the orders and modes in which PyTorch's tests check theirs."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from upstream.patch import Gradient


def check_gradients(case: Gradient) -> None:
    """Compares derivatives with finite differences, as PyTorch's own tests of gradients do.

    First order in reverse and forward mode and batched, second order in reverse mode and forward over
    reverse, third order in reverse mode.

    Raises:
        RuntimeError: a derivative differs.
    """
    function, inputs = case.function, case.inputs
    with _filled_memory():
        gradcheck(function, inputs, fast_mode=True, check_forward_ad=True, check_batched_grad=True)
        gradgradcheck(function, inputs, fast_mode=True, check_fwd_over_rev=True)
        of_gradient = partial(_gradient, function)
        if of_gradient(*inputs):
            gradgradcheck(of_gradient, inputs, fast_mode=True)


def is_patched(case: Gradient) -> bool:
    """Whether the patch differentiates."""
    return "OverrideBackward" in set(_nodes(_listed(case.function(*case.inputs))))


def _gradient(function: Callable[..., Any], *inputs: Tensor) -> tuple[Tensor, ...]:
    """What can be differentiated of the gradient of one combination of the outputs."""
    outputs = [output for output in _listed(function(*inputs)) if output.requires_grad]
    generator = torch.Generator().manual_seed(0)
    cotangents = [
        torch.randn(each.shape, dtype=each.dtype, generator=generator) for each in outputs
    ]
    gradients = torch.autograd.grad(outputs, inputs, cotangents, create_graph=True)
    return tuple(each for each in gradients if each.requires_grad)


@contextlib.contextmanager
def _filled_memory() -> Iterator[None]:
    """Makes results of equal calls equal.

    Before pytorch#187436, gelsy read its pivots from memory that nobody had written, and solutions of equal
    calls differed by roundoff; for the derivative along an empty tensor, gradcheck allows no difference.
    """
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _listed(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else outputs


def _nodes(outputs: tuple[Tensor, ...]) -> Iterator[str]:
    """The names of the nodes of a graph."""
    waiting, seen = [output.grad_fn for output in outputs], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield node.name().split("::")[-1]
        waiting += [following for following, _ in node.next_functions]
