"""LU factors of rank-deficient matrices in canonical form.

Once the rank r is exhausted, the Schur complement is roundoff and so is the pivoting within it. The
canonical form undoes those row swaps and sets the trailing block to zero, which makes the factors a
smooth function of matrices of that rank.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.lu_rank import may_be_deficient, ranks
from strategies.factors.pivots import inverse_order
from strategies.kernels.cpu import calls


class CanonicalLU(NamedTuple):
    """What `canonical` returns.

    Attributes:
        LU, pivots: the same objects where no rank is deficient.
        inverse_order: of those pivots.
        rank: as in `strategies.factors.lu_rank`, int64 (...).
        is_suspect: whether it was in doubt, bool (...): only there a rank can be deficient or undecided,
            or a pivot zero.
    """

    LU: Tensor
    pivots: Tensor
    inverse_order: Tensor
    rank: Tensor
    is_suspect: Tensor


def canonical(LU: Tensor, pivots: Tensor) -> CanonicalLU:
    """Packed factors, (..., m, n), with LAPACK pivots, (..., min(m, n)), in canonical form."""
    *batch, m, n = LU.shape
    rank = torch.full(batch, min(m, n), dtype=torch.int64, device=LU.device)
    if LU.numel() == 0:
        nothing = torch.zeros(batch, dtype=torch.bool, device=LU.device)
        return CanonicalLU(LU, pivots, inverse_order(pivots, m), rank, nothing)
    found = calls.may_be_deficient(LU, pivots)
    if found is NotImplemented:
        found = may_be_deficient(LU), inverse_order(pivots, m)
    suspect, order = found
    if not bool(suspect.any()):
        return CanonicalLU(LU, pivots, order, rank, suspect)
    rank[suspect] = ranks(LU[suspect])
    deficient = (rank >= 0) & (rank < min(m, n))
    if bool(deficient.any()):
        LU, pivots = LU.clone(), pivots.clone()
        LU[deficient], pivots[deficient] = _truncated(
            LU[deficient], pivots[deficient], rank[deficient]
        )
        order = inverse_order(pivots, m)
    return CanonicalLU(LU, pivots, order, rank, suspect)


def _truncated(LU: Tensor, pivots: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
    """The canonical form of factors of deficient rank; all with one batch dimension."""
    m, n = LU.shape[-2:]
    steps = torch.arange(max(m, n), device=LU.device)
    done = steps < rank.unsqueeze(-1)
    stay = steps[: pivots.shape[-1]].to(pivots) + 1
    beyond = torch.where(done[:, : pivots.shape[-1]], stay, pivots)
    rows = inverse_order(beyond, m).unsqueeze(-1).expand(LU.shape)
    # Of the rows that later swaps have moved, only those of L count.
    L = torch.where(done[:, None, :n], LU.gather(-2, rows), 0)
    kept = torch.where(done[:, :m, None], LU, L)
    return kept, torch.where(done[:, : pivots.shape[-1]], pivots, stay)
