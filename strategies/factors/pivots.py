"""LU factors as LAPACK packs them, and its row swaps turned into orders of rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.kernels.cpu import calls

_SWAPS_AT_ONCE = 256
"""Bounds the memory for composing them: 8192 at once take as many integers as a matrix has entries."""

_FEW_SWAPS = 2**14  # that take less time on the host, with the way there and back


class PackedLU(NamedTuple):
    """PᵀA = L U in one matrix.

    Attributes:
        LU: L below the diagonal and U on and above it, (..., m, n).
        inverse_order: row i of A is row `inverse_order[i]` of L U, int64 (..., m).
    """

    LU: Tensor
    inverse_order: Tensor


def inverse_order(pivots: Tensor, rows: int) -> Tensor:
    """Where each row of A went by 1-based row swaps, (..., k): row i of A is row `inverse_order[i]` of L U.

    Returns:
        int64, (..., m), on the device of `pivots`, with m `rows`.

    Example:
        >>> inverse_order(torch.tensor([3, 3, 3], dtype=torch.int32), 3)
        tensor([1, 2, 0])
    """
    if pivots.is_cuda and pivots.numel() <= _FEW_SWAPS:
        return inverse_order(pivots.cpu(), rows).to(pivots.device)
    order = torch.empty(*pivots.shape[:-1], rows, dtype=torch.int64, device=pivots.device)
    is_written = calls.inverse_order(pivots, order) is not NotImplemented
    return order if is_written else _composed(pivots, rows)


def _composed(pivots: Tensor, rows: int) -> Tensor:
    """`inverse_order` without host synchronisation: a few launches for each `_SWAPS_AT_ONCE`."""
    order = torch.arange(rows, device=pivots.device).repeat(*pivots.shape[:-1], 1)
    for first, swaps in enumerate(torch.split(pivots, _SWAPS_AT_ONCE, dim=-1)):
        order = _of_swaps(swaps, first * _SWAPS_AT_ONCE, rows).gather(-1, order)
    return order


def _of_swaps(pivots: Tensor, first: int, rows: int) -> Tensor:
    """The order that successive swaps make, beginning with that of row `first`.

    Each swap is written as a permutation; neighbours are composed until one is left.
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
