"""Batches of right-hand sides beside batches of matrices, as PyTorch broadcasts them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from strategies.autograd.choice import are_matrices, are_of_kind

__all__ = ["fit", "for_each_matrix"]


def fit(A: Tensor, B: Tensor, left: bool) -> bool:
    """Whether B is a batch of matrices of right-hand sides that go with square A, on its left or right.

    Example:
        >>> A = torch.eye(3)
        >>> fit(A, torch.ones(5, 3, 2), True), fit(A, torch.ones(2, 3), True)
        (True, False)
    """
    if not (are_matrices(A, square=True) and are_of_kind(A, B) and B.ndim > 1):
        return False
    pairs = zip(reversed(A.shape[:-2]), reversed(B.shape[:-2]), strict=False)
    return B.shape[-2 if left else -1] == A.shape[-1] and all(
        one == other or 1 in (one, other) for one, other in pairs
    )


def for_each_matrix(
    solve: Callable[..., Tensor], A: Tensor, B: Tensor, *of_matrix: Tensor
) -> Tensor:
    """The solutions for batches that are broadcast, by a function for batches alike.

    One matrix with a batch of right-hand sides has all their columns at once.

    Args:
        solve: takes A, (..., n, n), B, (..., n, k), and what else was given.
        A: the matrices.
        B: the right-hand sides.
        of_matrix: vectors that belong to A, (..., n).

    Example:
        >>> for_each_matrix(torch.linalg.solve, torch.eye(2), torch.ones(5, 2, 3)).shape
        torch.Size([5, 2, 3])
    """
    if A.shape[:-2] == B.shape[:-2]:
        return solve(A, B, *of_matrix)
    n, k = B.shape[-2:]
    batch = torch.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    if A.ndim > 2:
        others = (each.expand(*batch, n) for each in of_matrix)
        return solve(A.expand(*batch, n, n), B.expand(*batch, n, k), *others)
    columns = B.movedim(-2, 0).reshape(n, math.prod(batch) * k)
    return solve(A, columns, *of_matrix).reshape(n, *batch, k).movedim(0, -2)
