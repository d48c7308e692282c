"""The determinant from packed LU factors, and how far it is from a well-conditioned one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.pivots import inverse_order
from strategies.formulas import det as formula
from strategies.kernels.cpu import inspection

__all__ = ["Determinant", "determinant"]


class Determinant(NamedTuple):
    """What `determinant` returns.

    Attributes:
        det: det A, (...).
        negligible: the most negligible pivots of a matrix of the batch, at least its corank.
        inverse_order: row i of A is row `inverse_order[i]` of L U, int64 (..., n).
    """

    det: Tensor
    negligible: int
    inverse_order: Tensor


def determinant(LU: Tensor, pivots: Tensor) -> Determinant:
    """Det A with the number of pivots by which one cannot divide twice, as a second derivative does.

    These negligible pivots are at most √ε times the largest entry of the factors.

    Args:
        LU: packed factors, (..., n, n).
        pivots: LAPACK pivots, int32 (..., n).

    Example:
        >>> LU, pivots, _ = torch.linalg.lu_factor_ex(torch.ones(2, 2))
        >>> determinant(LU, pivots)
        Determinant(det=tensor(0.), negligible=1, inverse_order=tensor([0, 1]))
    """
    if inspection.determinant.supports(LU, pivots):
        det, negligible, order = inspection.determinant(LU, pivots)
        return Determinant(det, int(negligible.max()), order)
    det, order = formula.determinant(LU, pivots), inverse_order(pivots, LU.shape[-1])
    if LU.numel() == 0:
        return Determinant(det, 0, order)
    diagonal = LU.diagonal(dim1=-2, dim2=-1).abs()
    small = diagonal <= torch.finfo(LU.dtype).eps ** 0.5 * LU.abs().amax((-2, -1)).unsqueeze(-1)
    return Determinant(det, int(small.sum(-1).max()), order)
