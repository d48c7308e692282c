"""Fused backwards of batches of small matrices on GPUs, in Triton: one launch each.

The same formulas as `strategies.kernels.cpu` has on the CPU. Several whole matrices are held in the
registers of a program, so that a backward reads its inputs once and writes its result once.
"""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType

from torch import Tensor

__all__ = ["inv", "lu", "solve", "takes"]

_LARGEST = 32
"""Rows and columns of a matrix that still fits into registers."""


def takes(*tensors: Tensor) -> bool:
    """Whether there are kernels for these matrices: on CUDA, real, and small each way.

    Example:
        >>> import torch
        >>> takes(torch.eye(3))
        False
    """
    first = tensors[0]
    return (
        first.is_cuda
        and not first.is_complex()
        and all(tensor.numel() > 0 and max(tensor.shape[-2:]) <= _LARGEST for tensor in tensors)
        and _has_triton()
    )


def lu(LU: Tensor, inverse_order: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of A = P L U from that of the packed factors: (..., m, n).

    Args:
        LU: packed factors, (..., m, n).
        inverse_order: where each row of A went, (..., m).
        cotangent: of the packed factors, (..., m, n).
    """
    (result,) = _kernels().run("lu", (LU, inverse_order, cotangent), (cotangent,), LU.shape[-2:])
    return result


def solve(LU: Tensor, pivots: Tensor, solution: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of A and B from that of the solution X of A X = B.

    Args:
        LU: packed factors, (..., n, n).
        pivots: LAPACK pivots, (..., n).
        solution: X, (..., n, k).
        cotangent: of X, (..., n, k).
    """
    arguments = (LU, pivots, solution, cotangent)
    rhs_result, result = _kernels().run("solve", arguments, (cotangent, LU), solution.shape[-2:])
    return result, rhs_result


def inv(LU: Tensor, pivots: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of A from that of its inverse: (..., n, n).

    Args:
        LU: packed factors, (..., n, n).
        pivots: LAPACK pivots, (..., n).
        cotangent: of the inverse, (..., n, n).
    """
    (result,) = _kernels().run("inv", (LU, pivots, cotangent), (LU,), LU.shape[-1:])
    return result


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _kernels() -> ModuleType:
    # It is optional, and takes a second to import.
    from strategies.kernels.cuda import programs as kernels

    return kernels
