"""LU factors of rank-deficient matrices in canonical form.

Once the rank r is exhausted, the Schur complement is roundoff and so is the pivoting within it. The
canonical form undoes those row swaps and sets the trailing block to zero, which makes the factors a
smooth function of matrices of that rank.

**When is a Schur complement roundoff?** The factors are exact for a matrix within E of the given one,
and |E| is about ε |L||U| (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., Theorem
9.3). With S = A₂₂ − A₂₁A₁₁⁻¹A₁₂ that changes the complement by

    dS = [−L₂L₁⁻¹  I] E [−U₁⁻¹U₂; I].

Were the entries of E independent, of mean zero and deviation ε |L||U|, then ‖dS‖²_F would be on average
what is compared here with ‖S‖²_F, without a further constant. Of thousands of random products of
factors of rank r it misses at most eight in a thousand (of 3×3 to 8×8; of larger ones three); it takes
no matrix with condition number 1e14 for deficient, and of those with one singular value of 1e-15 one
in a thousand (of complex ones, in ten). A bound on single entries, |U| ≤ c max(m, n) ε |L||U|, has no c
that does: with 4 it misses three in a hundred of the former and takes half of the latter.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.pivots import inverse_order
from strategies.kernels.cpu import inspection

__all__ = ["CanonicalLU", "canonical", "rest_is_roundoff"]


class CanonicalLU(NamedTuple):
    """What `canonical` returns."""

    LU: Tensor
    pivots: Tensor
    inverse_order: Tensor
    rank: Tensor
    is_suspect: Tensor


def canonical(LU: Tensor, pivots: Tensor) -> CanonicalLU:
    """Packed factors in canonical form, their pivots, inverse row orders and ranks.

    The rank is the smallest at which the Schur complement is roundoff (see above) and each row of U
    from there on small beside the terms that it is the sum of, which no scaling of rows or columns
    feigns.

    Args:
        LU: packed factors, (..., m, n).
        pivots: LAPACK pivots, (..., min(m, n)).

    Returns:
        LU and pivots, the same objects where every rank is full, `inverse_order` of those pivots,
        ranks, int64 (...), and whether a pivot may be zero, bool (...).

    Example:
        >>> LU, pivots, _ = torch.linalg.lu_factor_ex(torch.ones(2, 2))
        >>> canonical(LU, pivots).rank
        tensor(1)
    """
    *batch, m, n = LU.shape
    k = min(m, n)
    rank = torch.full(batch, k, dtype=torch.int64, device=LU.device)
    if LU.numel() == 0:
        nothing = torch.zeros(batch, dtype=torch.bool, device=LU.device)
        return CanonicalLU(LU, pivots, inverse_order(pivots, m), rank, nothing)
    # The test of the last pivot costs k products a matrix; few matrices go further.
    if inspection.pivot_may_be_zero.supports(LU, pivots):
        suspect, order = inspection.pivot_may_be_zero(LU, pivots)
    else:
        order = inverse_order(pivots, m)
        no_zero = LU.diagonal(dim1=-2, dim2=-1).all(-1)
        suspect = _last_pivot_is_small(LU).logical_or_(no_zero.logical_not_())
    deficient = rest_is_roundoff(LU, k - 1) if bool(suspect.any()) else None
    if deficient is None or not bool(deficient.any()):
        return CanonicalLU(LU, pivots, order, rank, suspect)
    LU, pivots = LU.clone(), pivots.clone()
    if inspection.canonicalize.supports(LU, pivots):
        matrices, swaps = LU[deficient].contiguous(), pivots[deficient].contiguous()
        rank[deficient] = inspection.canonicalize(matrices, swaps)
        LU[deficient], pivots[deficient] = matrices, swaps
    else:
        for index in deficient.nonzero().tolist():
            where = tuple(index)
            rank[where] = highest = _rank(LU[where])
            _canonicalize(LU[where], pivots[where], highest)
    return CanonicalLU(LU, pivots, inverse_order(pivots, m), rank, suspect)


def rest_is_roundoff(LU: Tensor, rank: int) -> Tensor:
    """Whether each matrix has at most that rank: what is left after as many steps is roundoff.

    Args:
        LU: packed factors, (..., m, n), not empty.
        rank: less than min(m, n).

    Returns:
        (...), bool.
    """
    ranks = torch.full(LU.shape[:-2], rank, dtype=torch.int64)
    if inspection.rest_is_roundoff.supports(LU, ranks):
        return inspection.rest_is_roundoff(LU, ranks)
    kernel = inspection.last_may_be_roundoff
    result = kernel(LU) if kernel.supports(LU) else _last_pivot_is_small(LU)
    if bool(result.any()):
        result[result.clone()] = _rest_is_roundoff(LU[result], rank)
    return result


def _last_pivot_is_small(LU: Tensor) -> Tensor:
    k = min(LU.shape[-2:])
    last = LU[..., k - 1, k - 1].abs()
    terms = (LU[..., k - 1, : k - 1].abs() * LU[..., : k - 1, k - 1].abs()).sum(-1) + last
    return last <= torch.finfo(LU.dtype).eps ** 0.5 * terms


def _rest_is_roundoff(LU: Tensor, rank: int) -> Tensor:
    *batch, m, n = LU.shape
    k = min(m, n)
    precision = torch.finfo(LU.dtype).eps
    # Squares of doubles of at most one do not overflow, nor underflow within 150 orders of magnitude.
    LU = LU.to(torch.promote_types(LU.dtype, torch.float64))
    L = LU[..., :k].tril(-1) + torch.eye(m, k, dtype=LU.dtype, device=LU.device)
    U = LU[..., :k, :].triu()
    terms = L.abs() @ U.abs()
    # Beside its terms, what is larger is no roundoff however much the elimination amplified it.
    small = (U[..., rank:, :].abs() <= precision**0.5 * terms[..., rank:k, :]).all(-1).all(-1)
    scale = terms.amax((-2, -1), keepdim=True)
    left = torch.linalg.solve_triangular(
        L[..., :rank, :rank], L[..., rank:, :rank], upper=False, left=False, unitriangular=True
    )
    right = torch.linalg.solve_triangular(U[..., :rank, :rank], U[..., :rank, rank:], upper=True)
    rows = torch.cat([left.abs().square().sum(-2), terms.new_ones(*batch, m - rank)], -1)
    columns = torch.cat([right.abs().square().sum(-1), terms.new_ones(*batch, n - rank)], -1)
    variance = rows.unsqueeze(-2) @ (terms / scale).square() @ columns.unsqueeze(-1)
    roundoff = variance[..., 0, 0].sqrt()
    complement = torch.linalg.matrix_norm(L[..., rank:, rank:] @ U[..., rank:, rank:] / scale)
    # Not ≤: after a pivot that is exactly zero, or of a zero matrix, the right side is not a number.
    return small & ~(complement > precision * roundoff)


def _rank(LU: Tensor) -> int:
    """The rank of a matrix whose last step of elimination is known to have been roundoff."""
    lowest, highest = 0, min(LU.shape) - 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        if bool(rest_is_roundoff(LU, middle)):
            highest = middle
        else:
            lowest = middle + 1
    return highest


def _canonicalize(LU: Tensor, pivots: Tensor, rank: int) -> None:
    swaps = (pivots - 1).tolist()
    for i in range(len(swaps) - 1, rank - 1, -1):
        rows = [i, swaps[i]]
        LU[rows, :rank] = LU[rows[::-1], :rank]
    LU[rank:, rank:] = 0
    k = len(swaps)
    pivots[rank:] = torch.arange(rank + 1, k + 1, dtype=pivots.dtype, device=pivots.device)
