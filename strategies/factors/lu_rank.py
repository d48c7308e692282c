"""The rank of a matrix as its LU factors tell it, if they tell it at all, and the factors of that rank.

The factors are exact for a matrix within E of the given one, and |E| is about ε |L||U| (Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd ed., Theorem 9.3); a product of two factors is
rounded by as much. With S = A₂₂ − A₂₁A₁₁⁻¹A₁₂ after r steps, that changes the complement by

    dS = Y E X,    Y = [−L₂L₁⁻¹  I],    X = [−U₁⁻¹U₂; I].

Were the entries of E independent, of mean zero and deviation ε |L||U|, then entry (i, j) of dS would have
the deviation D = ε √(|Y|² (|L||U|)² |X|²), squares taken of entries. So two numbers tell a rank r:

- each of the first r pivots is at least `_REGULAR` times its D, Y and X being those of the block that
  ends with it: no roundoff makes the leading block singular;
- the root mean square of S / D is at most `_ROUNDOFF` after r steps, but not after r − 1: what is left
  is roundoff, and nothing else is.

Both are the same for any scaling of rows and columns. Where no r has both, no rank is right: roundoff
may have made A, or its leading columns, singular, and the gradient of LU, which is another for each
rank, is not determined.

Of thousands of products of random factors, S / D is 0.3 on average and over 1.5 for one in a thousand
(`tests/factors/test_rank_of_products.py`). Of matrices with condition number 1e14 (1e5 in single
precision), the pivots are at least ten times D. What no test of A can tell is a product that lost more
digits than an elimination does, where |C||F| is much greater than |CF|: A then is of full rank.

Once the rank r is exhausted, the Schur complement is roundoff and so is the pivoting within it. The
canonical form undoes those row swaps and sets the trailing block to zero, which makes the factors a
smooth function of matrices of that rank.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.pivots import inverse_order
from strategies.kernels.cpu import calls

UNDECIDED = -1
"""Stands for the rank where no rank is right."""

NOT_FINITE = -2
"""Stands for the rank of a matrix with NaN or infinity in it."""

_ROUNDOFF = 1.5
_REGULAR = 3.0
_LARGE_ROUNDOFF = 8.0
"""All known to `csrc/include/lu_rank.hpp` and `roundoff.hpp`, too."""


def may_be_deficient(LU: Tensor) -> Tensor:
    """Whether a pivot of packed factors, (..., m, n), could be roundoff, or is not finite: bool, (...).

    `ranks` tells whether it is. Looks only at rows with a pivot that is small beside its row of L and
    its column of U, or with an entry of L that may be roundoff; see `csrc/include/roundoff.hpp`, which
    is the same and looks closer.
    """
    k, precision = min(LU.shape[-2:]), torch.finfo(LU.dtype).eps
    L, U = _split(LU[..., :k, :k], k)
    pivots = LU.diagonal(dim1=-2, dim2=-1).abs()
    factors, of_columns = L.abs(), U.abs().sum(-2)
    of_rows = factors.amax(-1)
    # Sums grow with the size: of random matrices in single precision, one in ten is looked at.
    small = min(precision**0.25, k**-1.5)
    is_large = (pivots > small * of_rows * of_columns).all(-1)  # not if a pivot is NaN
    roundoff = (
        _LARGE_ROUNDOFF * precision * of_rows.unsqueeze(-1) * (of_columns / pivots).unsqueeze(-2)
    )
    is_roundoff = (factors < roundoff) & (factors > 0)
    return ~is_large | is_roundoff.tril(-1).flatten(-2).any(-1)


def ranks(LU: Tensor) -> Tensor:
    """The rank of each matrix, or `UNDECIDED`, or `NOT_FINITE`: of packed factors, (b, m, n), int64 (b)."""
    full = min(LU.shape[-2:])
    finite = LU.isfinite().flatten(1).all(-1)
    precision = torch.finfo(LU.dtype).eps
    scaled = _scaled(LU)
    rank = regular_pivots(LU).long().cumprod(-1).sum(-1)
    is_all = _rest_is_roundoff(scaled, rank, precision) | (rank == full)
    too_much = _rest_is_roundoff(scaled, (rank - 1).clamp(min=0), precision) & (rank > 0)
    return rank.masked_fill(~is_all | too_much, UNDECIDED).masked_fill(~finite, NOT_FINITE)


def regular_pivots(LU: Tensor) -> Tensor:
    """Which pivots of (b, m, n) can not be roundoff, if all before them are none: bool, (b, min(m, n))."""
    precision, LU = torch.finfo(LU.dtype).eps, _scaled(LU)
    k = min(LU.shape[-2:])
    L, U = _split(LU[..., :k, :k], k)
    pivots = U.diagonal(dim1=-2, dim2=-1)
    # What follows a zero pivot is not asked for.
    by_rows = U / torch.where(pivots == 0, 1, pivots).unsqueeze(-1)
    identity = torch.eye(k, dtype=LU.dtype, device=LU.device).expand(L.shape)
    # Row j of L⁻¹ is row j of Y; column j of (D⁻¹U)⁻¹, D the diagonal of U, is column j of X.
    Y = torch.linalg.solve_triangular(L, identity, upper=False, unitriangular=True)
    X = torch.linalg.solve_triangular(by_rows, identity, upper=True, unitriangular=True)
    variance = ((Y.abs().square() @ (L.abs() @ U.abs()).square()) * X.abs().square().mT).sum(-1)
    return (pivots != 0) & (pivots.abs() >= _REGULAR * precision * variance.sqrt())


def rest_is_roundoff(LU: Tensor, rank: int) -> Tensor:
    """Whether each matrix has at most a rank below min(m, n), beyond which all is roundoff: bool, (...)."""
    result = calls.last_may_be_roundoff(LU)
    if result is NotImplemented:
        result = may_be_deficient(LU)
    result &= LU.isfinite().all(-1).all(-1)
    if bool(result.any()):
        suspects = LU[result]
        steps = torch.full((len(suspects),), rank, device=LU.device)
        precision = torch.finfo(LU.dtype).eps
        result[result.clone()] = _rest_is_roundoff(_scaled(suspects), steps, precision)
    return result


def _split(LU: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """L, (..., m, k), and U, (..., k, n)."""
    identity = torch.eye(LU.shape[-2], k, dtype=LU.dtype, device=LU.device)
    return LU[..., :k].tril(-1) + identity, LU[..., :k, :].triu()


def _scaled(LU: Tensor) -> Tensor:
    """In double precision, the largest entry of each column of U being one."""
    LU = LU.to(torch.promote_types(LU.dtype, torch.float64))
    largest = LU.triu().abs().amax(-2, keepdim=True)
    L, U = LU.tril(-1), LU.triu() / torch.where(largest > 0, largest, 1)
    return L + U


def _rest_is_roundoff(LU: Tensor, steps: Tensor, precision: float) -> Tensor:
    """Whether what is left of each matrix after its number of steps, (batch), is roundoff."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = _split(LU, k)
    done = torch.arange(max(m, n), device=LU.device) < steps.unsqueeze(-1)
    column, row = done.unsqueeze(-1), done.unsqueeze(-2)
    identity = torch.eye(k, dtype=LU.dtype, device=LU.device)
    both = column[..., :k, :] & row[..., :k]
    # Y = [Y₁ I] and X = [X₁; I] with zeros for what is done, so that all matrices have one shape.
    Y = torch.linalg.solve_triangular(
        torch.where(both, L[..., :k, :], identity),
        torch.where(row[..., :k] & ~column[..., :m, :], L, 0),
        upper=False,
        left=False,
        unitriangular=True,
    )
    X = torch.linalg.solve_triangular(
        torch.where(both, U[..., :k], identity),
        torch.where(column[..., :k, :] & ~row[..., :n], U, 0),
        upper=True,
    )
    terms = (L.abs() @ U.abs()).square()
    left = Y.abs().square() @ terms[..., :k, :] + terms
    variance = left[..., :k] @ X.abs().square() + left
    complement = L.masked_fill(row[..., :k], 0) @ U.masked_fill(column[..., :k, :], 0)
    complement = complement.masked_fill(column[..., :m, :] | row[..., :n], 0).abs()
    ratio = torch.where(complement > 0, complement / variance.sqrt(), 0)
    entries = (m - steps) * (n - steps)
    return ratio.square().sum((-2, -1)) <= entries * (_ROUNDOFF * precision) ** 2


class CanonicalLU(NamedTuple):
    """What `canonical` returns.

    Attributes:
        LU, pivots: the same objects where no rank is deficient.
        inverse_order: of those pivots.
        rank: as `ranks` has it, int64 (...).
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
