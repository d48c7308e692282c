"""Which two loops do an operation on small matrices, and what passes between them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["LANES", "Lane", "Place", "Problem", "byte_vector", "columns", "rows"]

_ALIGNMENT = 64


class Place(NamedTuple):
    """A tensor to be allocated, and as what a loop sees it: matrices, each row after row, or columns."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    extents: tuple[int, int, int]

    def batched(self, batch: tuple[int, ...]) -> Place:
        """As many of it; what is empty is so for all matrices together."""
        if self.is_empty or not batch:
            return self
        _, m, n = self.extents
        steps = itertools.accumulate(reversed(batch[1:]), operator.mul, initial=m * n)
        stride = (*reversed([*steps]), *self.stride)
        return Place((*batch, *self.size), stride, self.dtype, (math.prod(batch), m, n))

    @property
    def is_empty(self) -> bool:
        return 0 in self.size

    @property
    def bytes(self) -> int:
        """As many as it takes, and no fewer than leave what follows where vectors may begin."""
        return -(-math.prod(self.size) * self.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT

    def allocator(self) -> Callable[[], Tensor]:
        return functools.partial(torch.empty_strided, self.size, self.stride, dtype=self.dtype)


def rows(m: int, n: int, dtype: torch.dtype) -> Place:
    """A matrix, row after row."""
    return Place((m, n), (n, 1), dtype, (1, m, n))


def columns(m: int, n: int, dtype: torch.dtype) -> Place:
    """Laid out as LAPACK's results are; a loop sees the transpose."""
    return Place((m, n), (1, m), dtype, (1, n, m))


def _vector(n: int, dtype: torch.dtype) -> Place:
    return Place((n,), (1,), dtype, (1, n, 1))


def byte_vector(n: int) -> Place:
    """So many bytes."""
    return _vector(n, torch.uint8)


def _number(dtype: torch.dtype) -> Place:
    return Place((), (), dtype, (1, 1, 1))


class Problem(NamedTuple):
    """What a lane has to know of one matrix of the inputs: A is m×n, and B, if there is one, m×k."""

    m: int
    n: int
    k: int
    is_vector: bool
    dtype: torch.dtype

    def like_rhs(self, length: int) -> Place:
        """A matrix in the place of B, or a vector."""
        return _vector(length, self.dtype) if self.is_vector else rows(length, self.k, self.dtype)


@dataclass(frozen=True)
class Lane:
    """What passes between the two loops of an operation, said of one matrix.

    Attributes:
        forward: the loop that reads the inputs, and writes the outputs that are not empty and `kept`.
        backward: the loop that reads `reads` and the cotangents, and writes the gradients.
        outputs: of the operation.
        kept: what the backward reads besides inputs and outputs.
        reads: positions in inputs, outputs and kept.
        flops: floating-point operations of the two in real numbers, leading terms.
        cotangents: positions of the outputs whose cotangents the backward reads.
        rarely: positions of those that are differentiable, too, but not here.
        is_transposed: whether loops see the transpose of A and its gradient, and of the cotangent.
    """

    forward: str
    backward: str
    outputs: Sequence[Place]
    kept: Sequence[Place]
    reads: Sequence[int]
    flops: tuple[float, float]
    cotangents: Sequence[int] = (0,)
    rarely: Sequence[int] = ()
    is_transposed: bool = False

    def batched(self, batch: tuple[int, ...]) -> Lane:
        """The same of a batch of matrices."""
        outputs, kept = ([p.batched(batch) for p in places] for places in (self.outputs, self.kept))
        return dataclasses.replace(self, outputs=outputs, kept=kept)


def _factors(p: Problem) -> list[Place]:
    """LU by columns, and pivots."""
    return [rows(p.n, p.m, p.dtype), _vector(min(p.m, p.n), torch.int32)]


def _inv(p: Problem) -> Lane:
    flops = (8 / 3 * p.n**3, 4.0 * p.n**3)
    return Lane("inv", "inv", [rows(p.n, p.n, p.dtype)], [], [1], flops)


def _solve(p: Problem) -> Lane:
    flops = (2 / 3 * p.n**3 + 2 * p.n**2 * p.k, 4.0 * p.n**2 * p.k)
    return Lane("solve", "solve", [p.like_rhs(p.n)], _factors(p), [2, 3, 4], flops)


def _det(p: Problem) -> Lane:
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    kept = [*_factors(p), _number(p.dtype), _number(torch.int64)]
    return Lane("det", "det", [_number(p.dtype)], kept, [2, 3, 4, 5], flops)


def _slogdet(p: Problem) -> Lane:
    outputs = [_number(p.dtype), _number(p.dtype.to_real())]
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    if p.dtype.is_complex:
        reads, differentiable = [1, 3, 4], [0, 1]
        backward = "slogdet_of_complex"
        return Lane("slogdet", backward, outputs, _factors(p), reads, flops, differentiable)
    return Lane("slogdet", "slogdet", outputs, _factors(p), [3, 4], flops, [1], rarely=[0])


def _elimination_flops(p: Problem) -> tuple[float, float]:
    small, large = sorted((p.m, p.n))
    once = small**2 * large - small**3 / 3
    return once, 2 * once


def _lu_factor(p: Problem) -> Lane:
    outputs = [columns(p.m, p.n, p.dtype), _vector(min(p.m, p.n), torch.int32)]
    order = [_vector(p.m, torch.int64)]
    return Lane("lu_factor", "lu_factor", outputs, order, [1, 3], _elimination_flops(p))


def _lu(p: Problem) -> Lane:
    m, n, k = p.m, p.n, min(p.m, p.n)
    outputs = [rows(m, m, p.dtype), rows(m, k, p.dtype), rows(k, n, p.dtype)]
    kept = [rows(n, m, p.dtype), _vector(m, torch.int64)]
    return Lane("lu", "lu", outputs, kept, [4, 5], _elimination_flops(p), cotangents=[1, 2])


def _pinv(p: Problem) -> Lane:
    if p.m == p.n:
        return dataclasses.replace(_inv(p), forward="pinv_of_square")
    small, large = sorted((p.m, p.n))
    kept = [rows(small, large, p.dtype), rows(small, small, p.dtype)]
    flops = (5.0 * large * small**2, 6.0 * (large + small) * small**2)
    # (Aᵀ)⁺ is the transpose of A⁺, of complex A, too.
    is_wide = p.m < p.n
    result = (columns if is_wide else rows)(p.n, p.m, p.dtype)
    return Lane("pinv", "pinv", [result], kept, [2, 3], flops, is_transposed=is_wide)


def _lstsq(p: Problem) -> Lane | None:
    if p.m < p.n:
        return None
    residuals = _vector(p.k if p.m > p.n else 0, p.dtype.to_real())
    nothing = _vector(0, p.dtype.to_real())
    outputs = [p.like_rhs(p.n), residuals, _number(torch.int64), nothing]
    if p.m == p.n:
        flops = _solve(p).flops
        return Lane("lstsq_of_square", "solve", outputs, _factors(p), [2, 6, 7], flops)
    R = rows(p.n, p.n, p.dtype)
    flops = (2.0 * p.m * p.n**2 + 4 * p.m * p.n * p.k, (12.0 * p.m + 4 * p.n) * p.n * p.k)
    return Lane("lstsq", "lstsq", outputs, [R], [0, 1, 2, 6], flops, rarely=[1])


LANES: dict[str, Callable[[Problem], Lane | None]] = {
    "inv": _inv,
    "solve": _solve,
    "det": _det,
    "slogdet": _slogdet,
    "lu_factor": _lu_factor,
    "lu": _lu,
    "pinv": _pinv,
    "lstsq": _lstsq,
}
"""By operation."""
