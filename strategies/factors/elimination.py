"""LU factors of a batch, and solves with them, apart from two defects of PyTorch on the CPU.

PyTorch 2.13 shares the matrices of a batch among its threads, and each of those calls a
LAPACK that may ask for threads of its own. Inside a parallel region it gets none. MKL allows for that
unless it is told to ask for a fixed number, as `torch.set_num_threads` and MKL_DYNAMIC=FALSE do. Then
its threaded elimination runs with fewer threads than it counts on: pivots are wrong or out of range, or
the call never returns (https://github.com/pytorch/pytorch/pull/181570). MKL eliminates small matrices
in one thread, so they are not touched: of 1 to 128 rows and columns, and of up to 4096 entries,
none was wrong in 2 to 16 threads; the smallest wrong ones had 8184 entries.

`lu_solve` finds the next matrix of a batch by the stride of the last batch dimension, which tells nothing
where that has one entry, and other dimensions more. `vmap` adds such dimensions.
"""

import functools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from strategies.kernels.memory import is_addressable

_SAFE_SIZE = 128
_SAFE_ENTRIES = 4096


def lu_factor_ex(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.linalg.lu_factor_ex` outside of autograd, matrix by matrix where a batch might go wrong.

    Each matrix then has all threads.
    """
    if not _may_go_wrong(A):
        result: tuple[Tensor, Tensor, Tensor] = torch.linalg.lu_factor_ex(A, pivot=pivot)
        return result
    *batch, m, n = A.shape
    matrices = A.reshape(-1, m, n)
    count = len(matrices)
    LU = A.new_empty(count, n, m).mT  # column after column, as LAPACK has them
    pivots = torch.empty(count, min(m, n), dtype=torch.int32, device=A.device)
    info = torch.empty(count, dtype=torch.int32, device=A.device)
    with torch.no_grad():
        for matrix, *results in zip(matrices, LU, pivots, info, strict=True):
            torch.linalg.lu_factor_ex(matrix, pivot=pivot, out=tuple(results))
    return LU.reshape(A.shape), pivots.reshape(*batch, -1), info.reshape(batch)


def one_by_one(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A differentiable function that eliminates in square A, of that and others, matrix by matrix likewise.

    Example:
        >>> one_by_one(torch.linalg.inv)(torch.tensor([[[2.0]], [[4.0]]])).flatten()
        tensor([0.5000, 0.2500])
    """

    @functools.wraps(function)
    def of_batch(A: Tensor, *others: Tensor) -> Tensor:
        if not _may_go_wrong(A):
            return function(A, *others)
        batch = np.broadcast_shapes(*(each.shape[:-2] for each in (A, *others)))
        every = (each.expand(*batch, *each.shape[-2:]).flatten(0, -3) for each in (A, *others))
        found = torch.stack([*map(function, *every)])
        return found.reshape(*batch, *found.shape[1:])

    return of_batch


inv, solve = one_by_one(torch.linalg.inv), one_by_one(torch.linalg.solve)


@one_by_one
def sign(A: Tensor) -> Tensor:
    """That of det A, or its phase."""
    found: Tensor = torch.linalg.slogdet(A).sign
    return found


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """`torch.linalg.lu_solve` of factors with any strides.

    Example:
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[[2.0]], [[4.0]]]))
        >>> lu_solve(LU[:, None], pivots[:, None], torch.ones(2, 1, 1, 1)).flatten()
        tensor([0.5000, 0.2500])
    """
    may_be_misread = _may_be_misread(LU, B)
    if may_be_misread:
        LU = LU.contiguous()  # row after row, which PyTorch copies
    # `vmap` hands on pivots as they lie, however far apart those of one matrix are.
    if may_be_misread or torch._C._functorch.maybe_get_bdim(pivots) > 0:
        pivots = pivots.clone(memory_format=torch.contiguous_format)
    result: Tensor = torch.linalg.lu_solve(LU, pivots, B, left=left, adjoint=adjoint)
    return result


def _may_be_misread(LU: Tensor, B: Tensor) -> bool:
    has_one_matrix = LU.ndim > 2 and LU.shape[-3] == 1
    if is_addressable(LU):
        return LU.ndim > 3 and has_one_matrix
    functorch = torch._C._functorch
    levels = functorch.get_interpreter_stack()
    is_unusual = LU.ndim != B.ndim or levels is None or len(levels) > 1
    return is_unusual or has_one_matrix or functorch.maybe_get_bdim(LU) > 0


def _may_go_wrong(A: Tensor) -> bool:
    return (
        A.ndim > 2
        and max(A.shape[-2:]) > _SAFE_SIZE
        and A.shape[-2] * A.shape[-1] > _SAFE_ENTRIES
        and A.is_cpu
        and A.numel() > A.shape[-2] * A.shape[-1]
        and torch.get_num_threads() > 1
    )
