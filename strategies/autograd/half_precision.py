"""Half precision, computed in single precision and rounded once, and autocast.

LAPACK has neither float16 nor bfloat16. Inputs are converted exactly, results rounded to their dtype, and
so are gradients, by the derivative of the conversion.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

HALF = torch.float16, torch.bfloat16

TOLERANCES = "atol", "rtol", "rcond"
"""Options that are no operands, though they may be tensors."""


def is_autocast(tensor: Tensor) -> bool:
    """Whether autocast is on for the device of a tensor.

    Example:
        >>> with torch.autocast("cpu", torch.bfloat16):
        ...     is_autocast(torch.ones(1))
        True
    """
    return (tensor.is_cpu or tensor.is_cuda) and torch.is_autocast_enabled(tensor.device.type)


def is_concerned(arguments: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether a call is to be computed so: all operands are of one half type, or autocast is on.

    Operands of several dtypes are PyTorch's to refuse.

    Example:
        >>> is_concerned([torch.ones(1, dtype=torch.float16)], {}), is_concerned([torch.ones(1)], {})
        (True, False)
    """
    first = arguments[0] if arguments else next(iter(options.values()), None)
    if not isinstance(first, Tensor):
        return False
    # Of one device alone it takes longer to ask, and calls on small matrices take few microseconds.
    if (is_compiling() or torch._C._is_any_autocast_enabled()) and is_autocast(first):
        return True
    return first.dtype in HALF and all(
        each.dtype == first.dtype for each in _operands(arguments, options)
    )


def _operands(arguments: Sequence[Any], options: Mapping[str, Any]) -> list[Tensor]:
    named = [value for name, value in options.items() if name not in TOLERANCES]
    return [
        each
        for each in (*arguments, *named)
        if isinstance(each, Tensor) and (each.is_floating_point() or each.is_complex())
    ]


def in_single_precision(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """What a function returns for its arguments in single precision.

    Of half precision it is rounded to the dtype of the operands. Under autocast it stays in single
    precision, as what PyTorch computes so, and operands may be of either.

    Args:
        function: takes tensors, and returns one or a tuple of them.
        arguments: of it, for which `is_concerned`.
        options: likewise; tolerances may have another dtype.

    Example:
        >>> from strategies import linalg
        >>> linalg.inv(torch.tensor([[4.0]], dtype=torch.bfloat16))
        tensor([[0.2500]], dtype=torch.bfloat16)
    """
    first = _operands(arguments, options)[0]
    is_cast = is_autocast(first)
    # PyTorch has no autocast of meta tensors.
    device = "cpu" if first.is_meta else first.device.type
    with torch.autocast(device, enabled=False):
        wide = [_single(each) for each in arguments]
        result = function(*wide, **{name: _single(value) for name, value in options.items()})
        return result if is_cast else _rounded(result, first.dtype)


def _single(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in HALF
    return value.to(torch.float32) if is_half else value


def _rounded(result: Any, dtype: torch.dtype) -> Any:
    if isinstance(result, Tensor):
        return result.to(dtype) if result.is_floating_point() else result
    return type(result)(*(_rounded(each, dtype) for each in result))
