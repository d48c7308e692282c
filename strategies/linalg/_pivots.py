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
    if pivots.device.type != "cpu":
        return _composed(pivots, rows)
    order = torch.empty(*batch, rows, dtype=torch.int64)
    launch("inverse_order", rows + steps, batch, pivots, order)
    return order


def _composed(pivots: Tensor, rows: int) -> Tensor:
    """`inverse_order` without a loop over the swaps, nor a word of the host.

    Each swap is written as a permutation, and neighbours are composed until one is left: log₂ k
    gathers, over as many integers as the matrix has entries.
    """
    *batch, steps = pivots.shape
    here = torch.arange(steps, device=pivots.device).unsqueeze(-1)
    there = pivots.long().unsqueeze(-1) - 1
    orders = torch.arange(rows, device=pivots.device).repeat(*batch, max(steps, 1), 1)
    orders.scatter_(-1, there, here.expand(there.shape))
    orders.scatter_(-1, here.expand(there.shape), there)
    while (count := orders.shape[-2]) > 1:
        paired = orders[..., : count - count % 2, :]
        composed = paired[..., 1::2, :].gather(-1, paired[..., ::2, :])
        orders = torch.cat([composed, orders[..., paired.shape[-2] :, :]], dim=-2)
    return orders.squeeze(-2)


def order_of(inverse: Tensor) -> Tensor:
    """The inverse of a batch of permutations, (..., m)."""
    return inverse.argsort(-1)
