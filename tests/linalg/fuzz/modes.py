"""Compositions of derivatives, and tracers."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from .calls import Call
from .derivative import derivative, numbers_of, over_numbers
from .operands import FLOATS


def directional(
    word: str, apply: Callable[..., Any], operands: Sequence[Any], call: Call
) -> Tensor:
    """A derivative of a nonlinear loss of the first result, along as many directions as there are letters.

    Operands that are no floating-point tensors raise what the function does of them.
    """
    if not all(map(_is_float, operands)):
        apply(*operands)
        raise TypeError("there is no derivative")
    of_vector, x = over_numbers(apply, operands)

    def loss(numbers: Tensor) -> Tensor:
        found = of_vector(numbers)
        if not isinstance(found, Tensor):
            found = found[1 if call.operation in ("lu", "slogdet") else 0]
        values = numbers_of(found)
        return values.square().sum() + values.sum()

    value = derivative(loss, word, x)
    # Beside a one, of whose size the entries are: a derivative that is zero is so to rounding only.
    return torch.stack([value, torch.ones_like(value)])


def det_by_lu(A: Tensor) -> Tensor:
    """The determinant, of which PyTorch's own is wrong in its third derivatives."""
    LU, pivots = torch.linalg.lu_factor(A)
    swaps = pivots != torch.arange(1, A.shape[-1] + 1)
    return LU.diagonal(dim1=-2, dim2=-1).prod(-1) * (1 - 2 * (swaps.sum(-1) % 2))


def recorded(tracer: str, apply: Callable[..., Any], operands: Sequence[Any]) -> Callable[..., Any]:
    """What a tracer makes of a function, from operands that are not those it is then called with."""
    others = [each * 2 if _is_float(each) else each for each in operands]
    if not all(isinstance(each, Tensor) for each in operands):
        return apply

    def as_tuple(*given: Any) -> Any:
        found = apply(*given)
        return tuple(found) if isinstance(found, tuple) else found

    match tracer:
        case "jit.trace":
            return torch.jit.trace(as_tuple, tuple(others), check_trace=False)
        case "make_fx":
            return make_fx(as_tuple)(*others)
        case "functionalize":
            return torch.func.functionalize(as_tuple)
    if not all(map(_is_float, operands)):
        return apply  # of which there is no tangent
    # It takes no expanded tensors.
    return lambda *given: torch.func.linearize(as_tuple, *(each.clone() for each in given))[0]


def _is_float(operand: Any) -> bool:
    return isinstance(operand, Tensor) and operand.dtype in FLOATS
