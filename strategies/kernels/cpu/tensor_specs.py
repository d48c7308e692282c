"""Tensors that plans allocate, as kernels see them."""

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor

from strategies.kernels.large_pages import LARGE, on_large_pages

_LINE = 64
"""Bytes of a line of the cache, where vectors may begin."""


class TensorSpec(NamedTuple):
    """A tensor to be allocated, and as what a kernel sees it: matrices, row after row, or columns."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    extents: tuple[int, int, int]
    is_zero: bool = False

    def batched(self, batch: tuple[int, ...]) -> Self:
        """As many of it; what is empty is so for all matrices together."""
        if self.is_empty or not batch:
            return self
        _, m, n = self.extents
        steps = itertools.accumulate(reversed(batch[1:]), operator.mul, initial=m * n)
        stride = (*reversed([*steps]), *self.stride)
        size, extents = (*batch, *self.size), (math.prod(batch), m, n)
        return self._replace(size=size, stride=stride, extents=extents)

    @property
    def is_empty(self) -> bool:
        return 0 in self.size

    @property
    def bytes(self) -> int:
        """As many as it takes, and no fewer than leave what follows where vectors may begin."""
        return -(-math.prod(self.size) * self.dtype.itemsize // _LINE) * _LINE

    @property
    def is_large(self) -> bool:
        """Whether it is to be `on_large_pages`."""
        return math.prod(self.size) * self.dtype.itemsize >= LARGE

    def allocator(self) -> Callable[[], Tensor]:
        if self.is_zero:
            return functools.partial(torch.zeros, self.size, dtype=self.dtype)
        make = functools.partial(torch.empty_strided, self.size, self.stride, dtype=self.dtype)
        return (lambda: on_large_pages(make())) if self.is_large else make


def rows(m: int, n: int, dtype: torch.dtype) -> TensorSpec:
    """A matrix, row after row."""
    return TensorSpec((m, n), (n, 1), dtype, (1, m, n))


def columns(m: int, n: int, dtype: torch.dtype) -> TensorSpec:
    """Laid out as LAPACK's results are; a kernel sees the transpose."""
    return TensorSpec((m, n), (1, m), dtype, (1, n, m))


def vector(n: int, dtype: torch.dtype) -> TensorSpec:
    """Of a matrix, so many numbers."""
    return TensorSpec((n,), (1,), dtype, (1, n, 1))


def number(dtype: torch.dtype) -> TensorSpec:
    """Of a matrix, one number."""
    return TensorSpec((), (), dtype, (1, 1, 1))


INFO = number(torch.int32)._replace(is_zero=True)
"""What LAPACK reports of a factorization that succeeded."""
