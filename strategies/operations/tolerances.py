"""Tolerances of a rank as the fast path takes them: two numbers."""

import math

import torch
from torch import Tensor

from strategies.factors.preconditioned import values_of
from strategies.strategy import Tolerance


def as_numbers(A: Tensor, atol: Tolerance, rtol: Tolerance) -> tuple[float, ...] | None:
    """Atol and rtol; none where both are the defaults, and None where a tensor gives more than one number.

    Example:
        >>> as_numbers(torch.ones(2, 2), None, None), as_numbers(torch.ones(2, 2), 1e-3, None)
        ((), (0.001, 0.0))
    """
    if atol is None and rtol is None:
        return ()
    if not (_is_number(atol) and _is_number(rtol)):
        return None
    absolute, relative = (None if each is None else max(float(each), 0.0) for each in (atol, rtol))
    if relative is None:
        is_absolute = isinstance(atol, Tensor) or bool(absolute)
        relative = 0.0 if is_absolute else max(A.shape[-2:]) * torch.finfo(A.dtype).eps
    return absolute or 0.0, relative


def _is_number(tolerance: Tolerance) -> bool:
    if isinstance(tolerance, Tensor):
        is_one = tolerance.is_cpu and tolerance.ndim == 0 and not tolerance.is_complex()
        value = values_of(tolerance) if is_one else None
        return value is not None and math.isfinite(value)
    return tolerance is None or math.isfinite(tolerance)
