"""Products with tall matrices on the CPU, their rows a batch like another.

In a library a product two columns wide takes several times as long as to read the matrix, and one
with a gradient of the matrix's size for its result reads or writes it once more.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from strategies.kernels.cpu import launch

__all__ = ["gram_product", "lstsq_gradients"]

_ROWS = 256  # for each summand; from 64 to 1024 it makes no difference


def gram_product(matrix: Tensor, w: Tensor) -> Tensor:
    """AᴴA w in one pass over A.

    Args:
        matrix: A, (..., m, n), contiguous, with m, n ≥ 1.
        w: (..., n, k), with k ≥ 1.

    Returns:
        (..., n, k).

    Example:
        >>> gram_product(torch.tensor([[3.0], [4.0]]), torch.tensor([[2.0]]))
        tensor([[50.]])
    """
    m, n = matrix.shape[-2:]
    *batch, _, k = w.shape
    parts = math.ceil(m / _ROWS)
    summands = w.new_empty(math.prod(batch) * parts, k * n)
    arguments = (matrix.view(-1, n), w.mT.contiguous().view(-1, n), summands)
    launch("gram_by_rows", 4 * _ROWS * n * k, summands.shape[:1], *arguments)
    return summands.view(*batch, parts, k, n).sum(-3).mT


def lstsq_gradients(
    w: Tensor, matrix: Tensor, rhs: Tensor, solution: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of tall least squares of full rank: see `formulas.lstsq`.

    Args:
        w: (AᴴA)⁻¹ G, (..., n, k).
        matrix: A, (..., m, n), contiguous.
        rhs: B, (..., m, k), with k ≥ 1.
        solution: X, (..., n, k).

    Returns:
        Ā, (..., m, n), and B̄, (..., m, k).

    Example:
        >>> A, B = torch.tensor([[1.0], [0.0]]), torch.tensor([[2.0], [3.0]])
        >>> lstsq_gradients(torch.ones(1, 1), A, B, torch.tensor([[2.0]]))
        (tensor([[-2.],
                [ 3.]]), tensor([[1.],
                [0.]]))
    """
    n, k = w.shape[-2:]
    gradient = torch.empty_like(matrix, memory_format=torch.contiguous_format)
    rhs_gradient = torch.empty_like(rhs, memory_format=torch.contiguous_format)
    columns = torch.cat((w, solution), dim=-1).mT.contiguous().view(-1, n)
    arguments = (matrix.view(-1, n), rhs.contiguous().view(-1, k), columns)
    results = (rhs_gradient.view(-1, k), gradient.view(-1, n))
    launch("lstsq_by_rows", 8 * n * k, results[0].shape[:1], *arguments, *results)
    return gradient, rhs_gradient
