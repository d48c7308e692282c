"""Row swaps, as LAPACK reports them, turned into orders of rows."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.kernels.cpu import launch

__all__ = ["inverse_order", "order_of"]

_SWAPS_AT_ONCE = 256
"""Bounds the integers that they are composed in: with 8192 at once, as many as a matrix has entries."""


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
    """`inverse_order` without a word of the host: a few launches for each `_SWAPS_AT_ONCE`."""
    order = torch.arange(rows, device=pivots.device).repeat(*pivots.shape[:-1], 1)
    for first, swaps in enumerate(pivots.split(_SWAPS_AT_ONCE, dim=-1)):
        order = _of_swaps(swaps, first * _SWAPS_AT_ONCE, rows).gather(-1, order)
    return order


def _of_swaps(pivots: Tensor, first: int, rows: int) -> Tensor:
    """The order that successive swaps make, the first of them that of row `first`.

    Each is written as a permutation, and neighbours are composed until one is left.
    """
    *batch, steps = pivots.shape
    here = torch.arange(first, first + steps, device=pivots.device).unsqueeze(-1)
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
