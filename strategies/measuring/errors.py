"""How wrong the gradients of a case are, by exact ones of its first matrices."""

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from strategies import operations
from strategies.accuracy import gradient
from strategies.accuracy.certified import Certified
from strategies.measuring.case import Case
from strategies.measuring.measurement import WORST_ERROR
from strategies.measuring.workload import forward
from strategies.policy import BASELINE

CHECKED = 4
"""Matrices of a batch whose gradients are compared with exact ones."""

LARGEST_EXACT = 2**24
"""The most multiplications in a matrix product for which the exact gradient takes a second."""


def gradient_error(case: Case, computed: Sequence[Tensor]) -> float | None:
    """The largest ‖computed − exact‖ / ‖exact‖ over the inputs and the first matrices of a batch.

    It is above zero, so that it can be drawn on a logarithmic axis, and `WORST_ERROR` at most; None
    where the exact gradient would take too long.
    """
    if math.prod(case.shape) * min(case.shape) > LARGEST_EXACT:
        return None
    defined = operations.get(case.operation).defined(_first(case, computed))
    error = _exact_gradient(case).relative_error(defined)
    if not error < WORST_ERROR:
        return WORST_ERROR
    return max(error, torch.finfo(case.dtype).eps * 2**-10)


def checked_problem(case: Case) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs and cotangents of the matrices that are checked, without a graph."""
    return _first(case, case.inputs()), _first(case, case.cotangents(forward(case, BASELINE)))


@functools.lru_cache(maxsize=1)
def _exact_gradient(case: Case) -> Certified:
    inputs, cotangents = checked_problem(case)
    return gradient(case.operation, inputs, cotangents, rank=case.known_rank)


def _first(case: Case, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(t.detach()[:CHECKED] if case.batch else t.detach() for t in tensors)
