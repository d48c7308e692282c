"""What every kernel is: it knows what it supports, allocates its results and is called with tensors."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

import torch
from torch import Tensor

from strategies.kernels.memory import is_materializable

__all__ = ["Inputs", "Kernel", "Results", "by_rows", "if_supported"]

Inputs = TypeVarTuple("Inputs")
Results = TypeVar("Results", bound=Tensor | tuple[Tensor, ...])


class Kernel(ABC, Generic[*Inputs, Results]):
    """Compiled code that is called with tensors and returns tensors.

    Args:
        allocate: makes the results, empty, from what the kernel reads. It gives the kernel its name
            and its documentation.
        suits: whether the kernel can take such tensors and is the fastest way for them, as measured.
    """

    def __init__(self, allocate: Callable[[*Inputs], Results], suits: Callable[..., bool]) -> None:
        functools.update_wrapper(self, allocate)
        self.name = allocate.__name__
        self._allocate, self._suits = allocate, suits

    @abstractmethod
    def _runs_on(self, tensor: Tensor) -> bool:
        """Whether there is compiled code for the device of a tensor."""

    @abstractmethod
    def _run(self, read: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> None: ...

    def supports(self, *tensors: *Inputs) -> bool:
        """Whether to call the kernel with these tensors; operations of torch take all others."""
        read = cast("tuple[Tensor, ...]", tensors)
        return (
            self._runs_on(read[0]) and self._suits(*tensors) and all(map(is_materializable, read))
        )

    def __call__(self, *tensors: *Inputs) -> Results:
        results = self._allocate(*tensors)
        written = (results,) if isinstance(results, Tensor) else results
        self._run(cast("tuple[Tensor, ...]", tensors), written)
        return results


def if_supported(kernel: Kernel[*Inputs, Results], *tensors: *Inputs) -> Any:
    """The results of a kernel, NotImplemented if it does not support the tensors."""
    return kernel(*tensors) if kernel.supports(*tensors) else NotImplemented


def by_rows(like: Tensor) -> Tensor:
    """An empty tensor of the same shape, row after row."""
    return torch.empty_like(like, memory_format=torch.contiguous_format)
