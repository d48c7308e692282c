"""Which two loops do an operation on small matrices, and what passes between them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from strategies.allocation import LARGE, on_large_pages

__all__ = [
    "FEW_ROWS",
    "LANES",
    "TRIANGULAR",
    "Lane",
    "Place",
    "Problem",
    "byte_vector",
    "columns",
    "rows",
]

TRIANGULAR = "solve_lower", "solve_upper", "solve_unit_lower", "solve_unit_upper"
"""What `solve_triangular` stands for."""

_UP_TO_8, _UP_TO_4 = range(1, 9), range(1, 5)
FEW_ROWS = {
    "minors.det": range(1, 4),
    "tiny.inv": _UP_TO_8,
    "tiny.solve": _UP_TO_8,
    "tiny_cholesky.cholesky": _UP_TO_4,
    "tiny_cholesky.inverse": _UP_TO_4,
    "tiny_cholesky.solve": _UP_TO_4,
    "tiny_det.det": range(4, 9),
    "tiny_det.slogdet": _UP_TO_8,
}
"""Numbers of rows for which a loop, and that of its backward, is compiled by itself."""

_LINE, _CACHE = 64, 2**15
"""Bytes of a line of the first-level cache, where vectors may begin, and of all of it."""

_FEWEST_ACROSS, _MOST_BYTES_ACROSS = 8, 1280
"""Matrices from which on, and bytes of one up to which, vectors across a batch beat LAPACK on each."""

_MOST_WORK_OF_COMPLEX = 2**13
"""m n² of complex square matrices, up to which such vectors are faster than the operations of torch."""

_MOST_ENTRIES_OF_QR, _TALL = 2**18, 4
"""Of a matrix that has fewer rows than so many times its columns."""


_MOST_WORK_BY_TRIANGLE = 2**14
_MOST_ROWS_BY_TRIANGLE = 128, 32
"""Limits of n² k, and of n with one right-hand side and with several, to substitution in a loop."""


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
        return -(-math.prod(self.size) * self.dtype.itemsize // _LINE) * _LINE

    @property
    def is_large(self) -> bool:
        """Whether it is to be `on_large_pages`."""
        return math.prod(self.size) * self.dtype.itemsize >= LARGE

    def allocator(self) -> Callable[[], Tensor]:
        make = functools.partial(torch.empty_strided, self.size, self.stride, dtype=self.dtype)
        return (lambda: on_large_pages(make())) if self.is_large else make


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
    """What a lane has to know of the inputs: each A is m×n, and B, if there is one, m×k."""

    m: int
    n: int
    k: int
    is_vector: bool
    dtype: torch.dtype
    matrices: int

    def like_rhs(self, length: int) -> Place:
        """A matrix in the place of B, or a vector."""
        return _vector(length, self.dtype) if self.is_vector else rows(length, self.k, self.dtype)


@dataclass(frozen=True)
class Lane:
    """What passes between the two loops of an operation, said of one matrix.

    Attributes:
        forward: the loop that reads the inputs, and writes the outputs that are not empty and `kept`;
            named as in `compilation.entry`.
        backward: the loop that reads `reads` and the cotangents, and writes the gradients.
        outputs: of the operation.
        kept: what the backward reads besides inputs and outputs.
        reads: positions in inputs, outputs and kept, in this order.
        flops: floating-point operations of the two in real numbers, leading terms.
        cotangents: positions of the outputs whose cotangents the backward reads.
        rarely: positions of those that are differentiable, too, but not here.
        is_transposed: whether loops see the transpose of A and its gradient, and of the cotangent.
        by_columns: whether loops write the gradient of the matrix that they see by columns.
        rank: position of an output, and of one that is empty unless the first is n everywhere; if any.
        side_by_side: matrices that the loops take together; one if they go from matrix to matrix.
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
    by_columns: bool = False
    rank: tuple[int, int] | None = None
    side_by_side: int = 1

    def batched(self, batch: tuple[int, ...]) -> Lane:
        """The same of a batch of matrices."""
        outputs, kept = ([p.batched(batch) for p in places] for places in (self.outputs, self.kept))
        return dataclasses.replace(self, outputs=outputs, kept=kept)


def _fused(forward: str, backward: str, *parts: Any, **options: Any) -> Lane:
    return Lane(f"fused_forward.{forward}", f"fused_backward.{backward}", *parts, **options)


def _both_of(n: int, few: str, forward: str, backward: str, kind: str = "") -> tuple[str, str]:
    """The loops for matrices of n rows if those are few, with the kind of backward, or the others."""
    return (
        (f"{few}-{n}", f"{few}_backward{kind}-{n}") if n in FEW_ROWS[few] else (forward, backward)
    )


def _factors(p: Problem) -> list[Place]:
    """LU by columns, and pivots."""
    return [rows(p.n, p.m, p.dtype), _vector(min(p.m, p.n), torch.int32)]


def _inv(p: Problem) -> Lane:
    flops = (8 / 3 * p.n**3, 4.0 * p.n**3)
    names = _both_of(p.n, "tiny.inv", "fused_forward.inv", "fused_backward.inv")
    return Lane(*names, [columns(p.n, p.n, p.dtype)], [], [1], flops)


def _solve(p: Problem) -> Lane:
    flops = (2 / 3 * p.n**3 + 2 * p.n**2 * p.k, 4.0 * p.n**2 * p.k)
    names = _both_of(p.n, "tiny.solve", "fused_forward.solve", "fused_backward.solve")
    return Lane(*names, [p.like_rhs(p.n)], _factors(p), [2, 3, 4], flops)


def _det(p: Problem) -> Lane:
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    others = "fused_forward.det", "fused_backward.det"
    if p.n in FEW_ROWS["minors.det"]:
        return Lane(*_both_of(p.n, "minors.det", *others), [_number(p.dtype)], [], [0], flops)
    names = _both_of(p.n, "tiny_det.det", *others)
    kept = [*_factors(p), _number(p.dtype), _number(torch.int64)]
    return Lane(*names, [_number(p.dtype)], kept, [2, 3, 4, 5], flops)


def _slogdet(p: Problem) -> Lane:
    outputs = [_number(p.dtype), _number(p.dtype.to_real())]
    flops = (2 / 3 * p.n**3, 2.0 * p.n**3)
    kind = "_of_complex" if p.dtype.is_complex else ""
    others = "fused_forward.slogdet", f"fused_backward.slogdet{kind}"
    names = _both_of(p.n, "tiny_det.slogdet", *others, kind)
    if p.dtype.is_complex:
        return Lane(*names, outputs, _factors(p), [1, 3, 4], flops, [0, 1])
    return Lane(*names, outputs, _factors(p), [3, 4], flops, [1], rarely=[0])


def _elimination_flops(p: Problem) -> tuple[float, float]:
    small, large = sorted((p.m, p.n))
    once = small**2 * large - small**3 / 3
    return once, 2 * once


def _lu_factor(p: Problem) -> Lane:
    outputs = [columns(p.m, p.n, p.dtype), _vector(min(p.m, p.n), torch.int32)]
    order = [_vector(p.m, torch.int64)]
    return _fused("lu_factor", "lu_factor", outputs, order, [1, 3], _elimination_flops(p))


def _lu(p: Problem) -> Lane:
    m, n, k = p.m, p.n, min(p.m, p.n)
    outputs = [rows(m, m, p.dtype), rows(m, k, p.dtype), rows(k, n, p.dtype)]
    kept = [rows(n, m, p.dtype), _vector(m, torch.int64)]
    return _fused("lu", "lu", outputs, kept, [4, 5], _elimination_flops(p), cotangents=[1, 2])


def _pinv(p: Problem) -> Lane:
    if p.m == p.n:
        return dataclasses.replace(_inv(p), forward="fused_forward.pinv_of_square")
    small, large = sorted((p.m, p.n))
    kept = [rows(small, large, p.dtype), rows(small, small, p.dtype)]
    flops = (5.0 * large * small**2, 6.0 * (large + small) * small**2)
    # (Aᵀ)⁺ is the transpose of A⁺, of complex A, too.
    is_wide = p.m < p.n
    result = (columns if is_wide else rows)(p.n, p.m, p.dtype)
    options = {"is_transposed": is_wide, "by_columns": True}
    return _fused("pinv", "pinv", [result], kept, [2, 3], flops, **options)


def _lstsq(p: Problem) -> Lane:
    residuals = _vector(p.k if p.m > p.n else 0, p.dtype.to_real())
    nothing = _vector(0, p.dtype.to_real())
    outputs = [p.like_rhs(p.n), residuals, _number(torch.int64), nothing]
    if p.m == p.n:
        names = "fused_forward.lstsq_of_square", _solve(p).backward
        return Lane(*names, outputs, _factors(p), [2, 6, 7], _solve(p).flops)
    if p.m < p.n:
        kept = [rows(p.m, p.n, p.dtype), rows(p.m, p.m, p.dtype)]
        flops = (4.0 * p.n * p.m**2 + 2 * p.m * p.n * p.k, (8.0 * p.n + 4 * p.m) * p.m * p.k)
        return Lane("wide.lstsq", "wide.lstsq_backward", outputs, kept, [1, 2, 6, 7], flops)
    R = rows(p.n, p.n, p.dtype)
    flops = (2.0 * p.m * p.n**2 + 4 * p.m * p.n * p.k, (12.0 * p.m + 4 * p.n) * p.n * p.k)
    return _fused("lstsq", "lstsq", outputs, [R], [0, 1, 2, 6], flops, rarely=[1])


def _cholesky(p: Problem) -> Lane:
    flops = (1 / 3 * p.n**3, 2 / 3 * p.n**3)
    others = "by_cholesky.cholesky", "by_cholesky.cholesky_backward"
    names = _both_of(p.n, "tiny_cholesky.cholesky", *others)
    return Lane(*names, [columns(p.n, p.n, p.dtype)], [], [1], flops)


def _cholesky_solve(p: Problem) -> Lane:
    flops = (2.0 * p.n**2 * p.k, 6.0 * p.n**2 * p.k)
    others = "by_cholesky.solve", "by_cholesky.solve_backward"
    names = _both_of(p.n, "tiny_cholesky.solve", *others)
    kept = [rows(p.n, p.k, p.dtype)]
    return Lane(*names, [columns(p.n, p.k, p.dtype)], kept, [0, 2, 3], flops)


def _cholesky_inverse(p: Problem) -> Lane:
    others = "by_cholesky.inverse", "by_cholesky.inverse_backward"
    names = _both_of(p.n, "tiny_cholesky.inverse", *others)
    flops = (2 / 3 * p.n**3, 3.0 * p.n**3)
    return Lane(*names, [columns(p.n, p.n, p.dtype)], [], [0, 1], flops)


def _triangular(name: str) -> Callable[[Problem], Lane | None]:
    def lane(p: Problem) -> Lane | None:
        work = p.n**2 * p.k
        if p.is_vector or work > _MOST_WORK_BY_TRIANGLE or p.n > _MOST_ROWS_BY_TRIANGLE[p.k > 1]:
            return None
        names = f"by_triangle.{name}", f"by_triangle.{name}_backward"
        return Lane(*names, [p.like_rhs(p.n)], [], [0, 2], (1.0 * work, 2.0 * work))

    return lane


def _qr(p: Problem) -> Lane | None:
    if p.m < p.n:
        return None
    outputs = [columns(p.m, p.n, p.dtype), columns(p.n, p.n, p.dtype)]
    work = p.m * p.n**2
    flops = (4.0 * work - 4 / 3 * p.n**3, 5.0 * work + 2 * p.n**3)
    if p.m * p.n > _MOST_ENTRIES_OF_QR and p.m < _TALL * p.n:
        return None
    is_small = p.m * p.n * p.dtype.itemsize <= _MOST_BYTES_ACROSS
    across = is_small and p.matrices >= _FEWEST_ACROSS
    if p.m == p.n and p.dtype.is_complex:  # LAPACK may leave the last diagonal entry complex
        if work > _MOST_WORK_OF_COMPLEX:
            return None
        across = True
    if not across:
        names = "by_qr.qr", "by_qr.qr_backward"
        return Lane(*names, outputs, [], [1, 2], flops, [0, 1], is_transposed=True)
    names, together = ("by_qr.qr_across", "by_qr.qr_across_backward"), _side_by_side(p)
    return Lane(*names, outputs, [], [1, 2], flops, [0, 1], side_by_side=together)


def _side_by_side(p: Problem) -> int:
    """As many as the cache holds: an odd number of its lines, so that entries do not share a set."""
    lines = _CACHE // (p.m * p.n * _LINE)
    return max(1, lines - 1 + lines % 2) * (_LINE // p.dtype.itemsize)


def _bases(m: int, n: int, dtype: torch.dtype) -> list[Place]:
    """U and V of an SVD, as the loops of `by_svd` keep them."""
    k = min(m, n)
    return [rows(k, m, dtype), rows(n, k, dtype)]


def _svd_flops(p: Problem) -> float:
    """Golub and Van Loan, "Matrix Computations", 4th ed., section 8.6: R-SVD with both bases."""
    small, large = sorted((p.m, p.n))
    return 6.0 * large * small**2 + 20.0 * small**3


def _pinv_by_svd(p: Problem) -> Lane:
    small, large = sorted((p.m, p.n))
    is_wide = p.m < p.n
    result = (columns if is_wide else rows)(p.n, p.m, p.dtype)
    bases = _bases(large, small, p.dtype)
    kept = [*bases, _vector(small, p.dtype.to_real()), _number(torch.int64)]
    flops = (_svd_flops(p) + 2 * large * small**2, 10.0 * large * small**2)
    names = "by_svd.pinv", "by_svd.pinv_backward"
    return Lane(*names, [result], kept, [2, 3, 4, 5], flops, is_transposed=is_wide)


def _lstsq_by_svd(p: Problem) -> Lane:
    is_tall, real = p.m > p.n, p.dtype.to_real()
    residuals, values = _vector(p.k if is_tall else 0, real), _vector(min(p.m, p.n), real)
    outputs = [p.like_rhs(p.n), residuals, _number(torch.int64), values]
    entries = p.m * p.n * p.k
    return Lane(
        "by_svd.lstsq" if is_tall else "by_svd.lstsq_without_residuals",
        "by_svd.lstsq_backward",
        outputs,
        _bases(p.m, p.n, p.dtype),
        [1, 2, 4, 5, 6, 7],
        (_svd_flops(p) + 4.0 * entries, 12.0 * entries),
        rarely=[1],
        rank=(2, 1) if is_tall else None,
    )


LANES: dict[str, dict[str, Callable[[Problem], Lane | None]]] = {
    "factors": {
        "inv": _inv,
        "solve": _solve,
        "det": _det,
        "slogdet": _slogdet,
        "lu_factor": _lu_factor,
        "lu": _lu,
        "pinv": _pinv,
        "lstsq": _lstsq,
        "cholesky": _cholesky,
        "cholesky_solve": _cholesky_solve,
        "cholesky_inverse": _cholesky_inverse,
        "qr": _qr,
        **{name: _triangular(name) for name in TRIANGULAR},
    },
    "svd": {"pinv": _pinv_by_svd, "lstsq": _lstsq_by_svd},
}
"""By what a strategy holds, and by operation."""
