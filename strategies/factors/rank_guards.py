"""When a strategy refuses matrices that it cannot treat accurately.

A silent result without digits is worse than none: `"auto"` goes on to another strategy.
"""

import torch
from torch import Tensor

from strategies.errors import raise_if_deficient, raise_if_grown, raise_if_singular
from strategies.factors.condition import frobenius_norms, has_grown
from strategies.factors.elimination import lu_factor_ex
from strategies.strategy import Tolerance, rank_threshold

NOISE = 8
"""In ε: what rounding leaves of zero in the QR or LU factors of the smallest matrices."""

_NEVER_GROWS = 4  # columns: U of fewer is within any limit


def noise_level(matrix: Tensor) -> float:
    """Relative to ‖A‖_F, how small a singular value may be that is told from zero by QR or LU."""
    return 2 * max(*matrix.shape[-2:], NOISE) * torch.finfo(matrix.dtype).eps


def refuse_near_deficiency(
    smallest: Tensor, matrix: Tensor, rtol: Tolerance, atol: Tolerance, strategy: str
) -> None:
    """Raise unless σ_n of (..., m, n), m ≥ n, is safely above the tolerance, or above noise without one.

    `smallest` is a lower bound of σ_n or an estimate, (...).

    Raises:
        torch.linalg.LinAlgError: naming the strategy and the first such matrix of the batch.
    """
    norms = frobenius_norms(matrix)
    if rtol is None and atol is None:
        level = noise_level(matrix)
        if matrix.ndim == 2 and smallest.item() > level * norms.item():
            return
        threshold = level * norms
    else:
        threshold = rank_threshold(norms, matrix.shape, rtol, atol)
    if matrix.numel():
        raise_if_deficient(~(smallest > threshold), strategy)


def refuse_growth(matrix: Tensor, LU: Tensor, strategy: str) -> None:
    """Raise where elimination has lost digits of square A, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: naming the strategy and the first such matrix of the batch.
    """
    if matrix.shape[-1] > _NEVER_GROWS and matrix.numel():
        raise_if_grown(has_grown(matrix, LU), strategy)


def refuse_singular(smallest: Tensor, matrix: Tensor, strategy: str) -> None:
    """Raise where square A, (..., n, n), is singular; one that is nearly so has an inverse.

    At noise level singular values do not tell the two apart, and elimination decides as in torch: of
    a matrix with equal rows or columns, for one, it finds a pivot that is exactly zero. `smallest` is
    σ_n or an estimate, (...).

    Raises:
        torch.linalg.LinAlgError: naming the strategy and the first such matrix of the batch.
    """
    suspect = ~(smallest > noise_level(matrix) * frobenius_norms(matrix))
    if suspect.numel() and bool(suspect.any()):
        has_zero_pivot = lu_factor_ex(matrix)[2] != 0
        raise_if_singular(suspect & has_zero_pivot | (smallest == 0), strategy, "it has no inverse")
