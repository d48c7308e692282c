"""The work that is measured, and what a machine can be asked for of it."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from strategies import operations
from strategies.measuring.case import Case
from strategies.operations import Operation
from strategies.policy import BASELINE

Backward = Callable[[], tuple[Tensor, ...]]
"""Computes the gradients of a case's inputs once a call."""

_LARGEST_INPUT = {"cpu": 2**28, "cuda": 2**31}
"""Bytes of an input. A strategy keeps several arrays of that size, and all are kept at once."""

_CPU_BYTES = 5e9


def forward(case: Case, strategy: Any) -> tuple[Tensor, ...]:
    """The differentiable outputs of the case's operation by a strategy's name or instance."""
    record = operations.get(case.operation)
    return record.outputs(_function(record, strategy)(*case.inputs()))


def backward_of(case: Case, strategy: Any) -> Backward:
    """One backward a call, on a graph built here, once.

    The callable returns the gradients of the inputs and does nothing else: no forward, no
    input generation, no accumulation into `.grad`.

    Example:
        >>> backward = backward_of(Case("pinv", (5, 3)), "native")
        >>> backward()[0].shape
        torch.Size([5, 3])
    """
    inputs, outputs = case.inputs(), forward(case, strategy)
    cotangents = case.cotangents(outputs)
    return lambda: torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True)


def forward_backward_of(case: Case, strategy: Any) -> Backward:
    """One forward and its backward a call; otherwise as `backward_of`."""
    record, inputs = operations.get(case.operation), case.inputs()
    cotangents = case.cotangents(forward(case, strategy))
    function = _function(record, strategy)

    def forward_backward() -> tuple[Tensor, ...]:
        outputs = record.outputs(function(*inputs))
        return torch.autograd.grad(outputs, inputs, cotangents)

    return forward_backward


def _function(record: Operation, strategy: Any) -> Callable[..., Any]:
    """By a strategy; of the baseline, what is called without this package, whose choosing takes time."""
    if strategy == BASELINE and record.of_torch:
        return record.of_torch
    return functools.partial(record.function, strategy=strategy)


def is_affordable(case: Case, strategy: str) -> bool:
    """Whether 8 GB of memory, or those of the CUDA device, suffice for a case."""
    m, n = case.shape
    bytes_of_entry, on = max(case.batch, 1) * case.dtype.itemsize, torch.device(case.device)
    if m * max(n, case.rhs) * bytes_of_entry > _LARGEST_INPUT[on.type]:
        return False
    # PyTorch's backward makes two matrices of the larger dimension squared. (2.13)
    if strategy != BASELINE or not operations.get(case.operation).truncates or m == n:
        return True
    free = _CPU_BYTES
    if on.type == "cuda":
        free = 0.9 * torch.cuda.get_device_properties(on).total_memory
    return 2 * max(m, n) ** 2 * bytes_of_entry <= free
