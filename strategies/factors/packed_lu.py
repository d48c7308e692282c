"""LU factors as LAPACK packs them, with the order of the rows."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["PackedLU"]


class PackedLU(NamedTuple):
    """PᵀA = L U in one matrix.

    Attributes:
        LU: L below the diagonal and U on and above it, (..., m, n).
        inverse_order: row i of A is row `inverse_order[i]` of L U, int64 (..., m).
    """

    LU: Tensor
    inverse_order: Tensor
