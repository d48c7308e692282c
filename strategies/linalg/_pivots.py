"""Row swaps, as LAPACK reports them, turned into orders of rows."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

__all__ = ["inverse_order", "order_of"]


def inverse_order(pivots: Tensor, rows: int) -> Tensor:
    """Where each row of A went: row i of A is row `inverse_order[i]` of L U.

    Args:
        pivots: 1-based row swaps in the order in which they were made, (..., k).
        rows: m.

    Returns:
        int64, (..., m), on the device of `pivots`.

    Example:
        >>> inverse_order(torch.tensor([3, 3, 3], dtype=torch.int32), 3)
        tensor([1, 2, 0])
    """
    swaps = (
        pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
        .cpu()
        .numpy()
        .astype(np.int64)
        - 1
    )
    # Applied backwards, the swaps build the inverse of the row order that they make forwards.
    few_matrices = swaps.shape[0] <= 16
    build = _by_matrix if few_matrices else _by_step
    order = torch.from_numpy(build(swaps, rows)).to(pivots.device)
    return order.reshape(*pivots.shape[:-1], rows)


def order_of(inverse: Tensor) -> Tensor:
    """The inverse of a batch of permutations, (..., m)."""
    return inverse.argsort(-1)


def _by_matrix(swaps: np.ndarray, rows: int) -> np.ndarray:
    result = np.empty((swaps.shape[0], rows), dtype=np.int64)
    for index, matrix_swaps in enumerate(swaps.tolist()):
        order = list(range(rows))
        for i in range(len(matrix_swaps) - 1, -1, -1):
            j = matrix_swaps[i]
            order[i], order[j] = order[j], order[i]
        result[index] = order
    return result


def _by_step(swaps: np.ndarray, rows: int) -> np.ndarray:
    count = swaps.shape[0]
    result = np.tile(np.arange(rows), (count, 1))
    matrices = np.arange(count)
    for i in range(swaps.shape[1] - 1, -1, -1):
        j = swaps[:, i]
        result[matrices, i], result[matrices, j] = result[matrices, j], result[matrices, i].copy()
    return result
