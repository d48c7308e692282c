"""The check of a derivative, in the orders and modes in which PyTorch's tests check theirs."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from strategies.testing.global_state import preserved
from strategies.testing.spy import graph_of, tensors_in
from upstream.patch import Gradient


def check_gradients(case: Gradient) -> None:
    """Compares derivatives with finite differences, as PyTorch's own tests of gradients do.

    First order in reverse and forward mode and batched, second order in reverse mode and forward over
    reverse, third order in reverse mode.

    Before pytorch#187436, gelsy read its pivots from memory that nobody had written, and solutions of equal
    calls differed by roundoff; for the derivative along an empty tensor, gradcheck allows no difference.
    Deterministic algorithms fill new memory, and results of equal calls are equal.

    Raises:
        RuntimeError: a derivative differs.
    """
    function, inputs = case.function, case.inputs
    with preserved():
        torch.use_deterministic_algorithms(True, warn_only=True)
        gradcheck(function, inputs, fast_mode=True, check_forward_ad=True, check_batched_grad=True)
        gradgradcheck(function, inputs, fast_mode=True, check_fwd_over_rev=True)
        of_gradient = partial(_gradient, function)
        if of_gradient(*inputs):
            gradgradcheck(of_gradient, inputs, fast_mode=True)


def is_patched(case: Gradient) -> bool:
    """Whether the patch differentiates."""
    graph = graph_of(case.function(*case.inputs))
    return any(node.name().endswith("OverrideBackward") for node in graph)


def _gradient(function: Callable[..., Any], *inputs: Tensor) -> tuple[Tensor, ...]:
    """What can be differentiated of the gradient of one combination of the outputs."""
    outputs = [each for each in tensors_in(function(*inputs)) if each.requires_grad]
    generator = torch.Generator().manual_seed(0)
    cotangents = [
        torch.randn(each.shape, dtype=each.dtype, generator=generator) for each in outputs
    ]
    gradients = torch.autograd.grad(outputs, inputs, cotangents, create_graph=True)
    return tuple(each for each in gradients if each.requires_grad)
