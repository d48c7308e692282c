"""The work that is measured: forward, backward, and both, of one case by one strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from strategies import linalg
from strategies.measuring.case import Case

# Every operation's differentiable outputs; pivots, ranks and residuals are left out.
_CALLS: dict[str, Callable[[tuple[Tensor, ...], Any], tuple[Tensor, ...]]] = {
    "lu_factor": lambda inputs, s: (linalg.lu_factor(*inputs, strategy=s)[0],),
    "lu": lambda inputs, s: tuple(linalg.lu(*inputs, strategy=s)[1:]),
    "pinv": lambda inputs, s: (linalg.pinv(*inputs, strategy=s),),
    "lstsq": lambda inputs, s: (linalg.lstsq(inputs[0], inputs[1], strategy=s).solution,),
    "solve": lambda inputs, s: (linalg.solve(inputs[0], inputs[1], strategy=s),),
    "inv": lambda inputs, s: (linalg.inv(*inputs, strategy=s),),
    "det": lambda inputs, s: (linalg.det(*inputs, strategy=s),),
    # The sign of a real determinant is constant wherever it has a gradient.
    "slogdet": lambda inputs, s: tuple(linalg.slogdet(*inputs, strategy=s))[
        0 if inputs[0].is_complex() else 1 :
    ],
}


def forward(case: Case, strategy: Any) -> tuple[Tensor, ...]:
    """The differentiable outputs of the case's operation, with their graph.

    Args:
        case: what to compute.
        strategy: a strategy's name or instance.

    Example:
        >>> (inverse,) = forward(Case("pinv", (5, 3)), "native")
        >>> inverse.shape, inverse.requires_grad
        (torch.Size([3, 5]), True)
    """
    return _CALLS[case.operation](case.inputs(), strategy)


def backward_of(case: Case, strategy: Any) -> Callable[[], tuple[Tensor, ...]]:
    """One backward a call, on a graph built here, once.

    The callable returns the gradients of the inputs and does nothing else: no forward, no
    input generation, no accumulation into `.grad`.

    Example:
        >>> backward = backward_of(Case("pinv", (5, 3)), "native")
        >>> backward()[0].shape
        torch.Size([5, 3])
    """
    inputs = case.inputs()
    outputs = forward(case, strategy)
    cotangents = case.cotangents(outputs)

    def backward() -> tuple[Tensor, ...]:
        return torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True)

    return backward


def forward_backward_of(case: Case, strategy: Any) -> Callable[[], tuple[Tensor, ...]]:
    """One forward and its backward a call; otherwise as `backward_of`."""
    inputs = case.inputs()
    call = _CALLS[case.operation]
    cotangents = case.cotangents(call(inputs, strategy))

    def forward_backward() -> tuple[Tensor, ...]:
        return torch.autograd.grad(call(inputs, strategy), inputs, cotangents)

    return forward_backward
