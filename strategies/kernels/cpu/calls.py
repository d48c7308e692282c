"""Kernels that do one step of an operation: tests of rank, and reverses of factorizations.

Each is called with tensors, and returns tensors; NotImplemented where operations of PyTorch are to be used
instead. Factors named by columns are given transposed and contiguous, so that their columns are rows.
"""

# ruff: noqa: ARG005 - a kernel is declared with all that it reads
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from strategies.kernels.cpu import task
from strategies.kernels.cpu.library import DTYPES, is_available, kernel
from strategies.kernels.large_pages import uninitialized
from strategies.kernels.memory import is_materializable, materialized

_GROUP_BYTES = 2**15
"""A group gets more matrices up to this size, which the first-level cache holds."""

_MOST_MATRICES = 64


@dataclasses.dataclass(frozen=True)
class Call:
    """A kernel that is called with tensors.

    Attributes:
        name: of the kernel.
        allocate: makes the results, empty, from the inputs; a kernel may overwrite inputs and have none.
        flops: floating-point operations for one real matrix, leading terms.
        suits: whether the kernel can take such tensors, and is the fastest way for them.
        batch: the batch dimensions. Every tensor begins with them, or there is only one matrix.
    """

    name: str
    allocate: Callable[..., Tensor | tuple[Tensor, ...]]
    _: dataclasses.KW_ONLY
    flops: Callable[..., float]
    suits: Callable[..., bool] = lambda first, *_: first.numel() > 0
    batch: Callable[..., Sequence[int]] = lambda first, *_: first.shape[:-2]

    def supports(self, *tensors: Tensor) -> bool:
        """Whether the kernel takes these tensors; it may decline them still."""
        return (
            tensors[0].is_cpu
            and is_available()
            and self.suits(*tensors)
            and all(map(is_materializable, tensors))
        )

    def __call__(self, *tensors: Tensor) -> Any:
        """The results, as `allocate` makes them; NotImplemented if the kernel does not take the tensors.

        MemoryError if there is none for its scratch.
        """
        if not self.supports(*tensors):
            return NotImplemented
        results = self.allocate(*tensors)
        written = (results,) if isinstance(results, Tensor) else results
        return results if self._run(tensors, written) else NotImplemented

    def _run(self, read: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> bool:
        batch = self.batch(*read)
        count = math.prod(batch)
        if count == 0:
            return True
        # Kept in a list until the kernel returns, which has their addresses only.
        arguments = [*map(materialized, read), *written]
        if len(batch) > 1:
            flat = [t.reshape(count, *t.shape[len(batch) :]) for t in arguments[: len(read)]]
            # A copy of a result would be written in its place.
            arguments = [*flat, *(t.view(count, *t.shape[len(batch) :]) for t in written)]
        dtype = next((t.dtype for t in arguments if t.dtype in DTYPES), torch.float64)
        flops = count * self.flops(*read) * (4 if dtype.is_complex else 1)
        group = self._group_size(arguments[0], count)
        block = task.task(count, group, arguments, is_batch=bool(batch))
        found = kernel(self.name, dtype)
        is_done = task.run(found, block, math.ceil(count / group), flops, flops)
        if block[task.STATUS_WORD] == task.NO_MEMORY:
            raise MemoryError(f"the kernel {self.name} has no memory for its scratch")
        return is_done

    def _group_size(self, tensor: Tensor, count: int) -> int:
        of_one = tensor.element_size() * max(tensor.numel() // count, 1)
        most = max(1, min(_MOST_MATRICES, _GROUP_BYTES // of_one))
        return math.ceil(count / math.ceil(count / most))  # so that the last is nearly as full


def by_rows(like: Tensor) -> Tensor:
    """An empty tensor of the same shape, row after row."""
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def _empty(dtype: torch.dtype, *size: int) -> Tensor:
    # Of a torch.Size it takes microseconds longer.
    return torch.empty(size, dtype=dtype, device="cpu")


def _of_each(columns: Tensor) -> Tensor:
    return _empty(columns.dtype.to_real(), *columns.shape[:-2])


def reverse_flops(LU: Tensor, *_: Tensor) -> float:
    """Of reversing the elimination of a real matrix, leading terms: twice the elimination's."""
    small, large = sorted(LU.shape[-2:])
    return 2 * (small**2 * large - small**3 / 3)


inverse_order = Call(
    "inverse_order",
    lambda pivots, order: (),
    suits=lambda *_: True,
    flops=lambda pivots, order: pivots.shape[-1] + order.shape[-1],
    batch=lambda pivots, _: pivots.shape[:-1],
)
"""Writes where the swaps of LAPACK's pivots, (..., k), move each row: int64, (..., m)."""

determinant = Call(
    "determinant",
    lambda A, LU, pivots: (
        _empty(LU.dtype, *LU.shape[:-2]),
        _empty(torch.int64, *LU.shape[:-2], 3),
        _empty(torch.int64, *LU.shape[:-1]),
    ),
    flops=lambda A, *_: 6 * A.shape[-1] ** 2,
)
"""Det A as `strategies.factors.determinant` has it: mantissa, (...), notes, and `inverse_order`.

The notes are int64, (..., 3): the exponent, the number of negligible pivots, and how hard A is.
"""

may_be_deficient = Call(
    "may_be_deficient",
    lambda LU, pivots: (_empty(torch.bool, *LU.shape[:-2]), _empty(torch.int64, *LU.shape[:-1])),
    flops=lambda LU, _: min(LU.shape[-2:]) ** 2 + LU.shape[-2],
)
"""Whether some pivot may be roundoff or is not finite, (...), and `inverse_order`."""

last_may_be_roundoff = Call(
    "last_may_be_roundoff",
    lambda LU: _empty(torch.bool, *LU.shape[:-2]),
    flops=lambda LU: 2 * min(LU.shape[-2:]) ** 2,
)
"""Whether the last pivot may be roundoff: (...)."""

smallest_of_triangle = Call(
    "smallest_of_triangle", _of_each, flops=lambda columns: 2 * columns.shape[-2] ** 2
)
"""An estimate of σ_n, (...), of R by columns, (..., n, n), or (..., n, m) with reflectors below it."""

smallest_of_product = Call(
    "smallest_of_product", _of_each, flops=lambda columns: 4 * columns.shape[-1] ** 2
)
"""An estimate of σ_n, (...), of the product of packed L and U by columns, (..., n, n)."""

has_grown = Call(
    "has_grown",
    lambda matrix, _: _empty(torch.bool, *matrix.shape[:-2]),
    flops=lambda matrix, _: 3 * matrix.shape[-1] ** 2,
)
"""Whether a column of U, by columns, is too long beside that of A, (..., n, n): bool, (...)."""


def _derivative(name: str) -> Call:
    return Call(
        name,
        lambda LU, pivots, direction, *_: (
            by_rows(direction),
            _empty(direction.dtype, *direction.shape[:-2]),
            _empty(torch.bool, *direction.shape[:-2]),
        ),
        suits=lambda *_: True,
        flops=lambda LU, *_: 6 * LU.shape[-1] ** 3,
    )


derivative_of_inverse, derivative_of_adjugate = map(
    _derivative, ("derivative_of_inverse", "derivative_of_adjugate")
)
"""The derivative along C, (..., n, n), tr(A⁻¹C) or tr(adj(A) C), and whether both are right, bool (...).

They take LU by columns, pivots, C and, for the adjugate, det A.
"""

reverse_lu = Call("reverse_lu", lambda *_: (), flops=reverse_flops)
"""Overwrites the cotangent of packed factors by the gradient of A, (..., m, n), contiguous.

It takes the factors, conjugated, with their columns one after the other; `inverse_order`; the cotangent.
"""

reverse_cholesky = Call(
    "reverse_cholesky",
    lambda L, cotangent: uninitialized(cotangent, *cotangent.shape),
    flops=lambda L, _: 2 / 3 * L.shape[-1] ** 3,
)
"""The Hermitian gradient of A from the cotangent of its factor, (..., n, n), by columns."""
