"""Row swaps, as LAPACK reports them, turned into orders of rows."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.lanes import launch

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
    *batch, steps = pivots.shape
    order = torch.empty(*batch, rows, dtype=torch.int64)
    launch("inverse_order", rows + steps, batch, pivots.cpu(), order)
    return order.to(pivots.device)


def order_of(inverse: Tensor) -> Tensor:
    """The inverse of a batch of permutations, (..., m)."""
    return inverse.argsort(-1)
