"""LU factors of rank-deficient matrices in canonical form.

Once the rank r is exhausted, the Schur complement is roundoff and so is the pivoting within it. The
canonical form undoes those row swaps and sets the trailing block to zero, which makes the factors a
smooth function of matrices of that rank.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["canonical"]


def canonical(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Packed factors in canonical form, their pivots and ranks.

    A row of U counts as roundoff where each of its entries is negligible beside the terms that it is
    the sum of, |U| ≤ 4·max(m, n)·ε·(|L||U|), which no scaling of rows or columns feigns; the rank is
    the number of rows above the last such rows (Higham, "Accuracy and Stability of Numerical
    Algorithms", 2nd ed., Theorem 9.3 bounds the rounding error by this product).

    Args:
        LU: packed factors, (..., m, n).
        pivots: LAPACK pivots, (..., min(m, n)).

    Returns:
        LU and pivots, the same objects where every rank is full, and ranks, int64 (...).

    Example:
        >>> LU, pivots, _ = torch.linalg.lu_factor_ex(torch.ones(2, 2))
        >>> canonical(LU, pivots)[2]
        tensor(1)
    """
    k = min(LU.shape[-2:])
    rank = torch.full(LU.shape[:-2], k, dtype=torch.int64, device=LU.device)
    if LU.numel() == 0:
        return LU, pivots, rank
    tolerance = 4 * max(LU.shape[-2:]) * torch.finfo(LU.dtype).eps
    # The test for the last pivot alone costs k products a matrix; few matrices go further.
    last = LU[..., k - 1, k - 1].abs()
    terms = (LU[..., k - 1, : k - 1].abs() * LU[..., : k - 1, k - 1].abs()).sum(-1) + last
    suspicious = last <= tolerance * terms
    if not bool(suspicious.any()):
        return LU, pivots, rank
    LU, pivots = LU.clone(), pivots.clone()
    for index in suspicious.nonzero().tolist():
        where = tuple(index)
        found = _rank(LU[where], tolerance)
        if found < k:
            rank[where] = found
            _canonicalize(LU[where], pivots[where], found)
    return LU, pivots, rank


def _rank(LU: Tensor, tolerance: float) -> int:
    k = min(LU.shape)
    size = LU.abs()
    lower = size[:k, :k].tril(-1)
    upper = size[:k].triu()
    terms = upper + lower @ upper
    negligible = (upper <= tolerance * terms).all(-1).flip(0)
    return k - int(negligible.to(torch.int64).cumprod(0).sum())


def _canonicalize(LU: Tensor, pivots: Tensor, rank: int) -> None:
    swaps = (pivots - 1).tolist()
    for i in range(len(swaps) - 1, rank - 1, -1):
        rows = [i, swaps[i]]
        LU[rows, :rank] = LU[rows[::-1], :rank]
    LU[rank:, rank:] = 0
    k = len(swaps)
    pivots[rank:] = torch.arange(rank + 1, k + 1, dtype=pivots.dtype, device=pivots.device)
