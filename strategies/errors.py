"""The errors that are the project's own; everything else is what `torch.linalg` raises."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "LinAlgError",
    "StrategyNotFoundError",
    "UnsupportedError",
    "raise_if_deficient",
    "raise_if_not_finite",
    "raise_if_singular",
]


LinAlgError = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # missing from torch's stubs


class StrategyNotFoundError(LookupError):
    """No strategy has that name; the message lists the close ones."""


class UnsupportedError(NotImplementedError):
    """The strategy cannot do what it was asked; the message names one that can."""


def raise_if_not_finite(result: Tensor, matrix: Tensor) -> None:
    """Raise where NaN or Inf in a matrix has reached the result.

    Raises:
        torch.linalg.LinAlgError: as `torch.linalg.pinv` does.

    Example:
        >>> raise_if_not_finite(torch.ones(1), torch.ones(1, 1))
    """
    if not bool(torch.isfinite(result).all()) and not bool(torch.isfinite(matrix).all()):
        raise LinAlgError("the input matrix contained non-finite values")


def raise_if_singular(singular: Tensor, strategy: str, advice: str) -> None:
    """Raise where a matrix lacks the full rank that a strategy needs.

    Args:
        singular: boolean, one entry a matrix (any batch shape).
        strategy: the name of the strategy that needs full rank.
        advice: what would work instead.

    Raises:
        torch.linalg.LinAlgError: naming the strategy and the first such matrix of the batch.

    Example:
        >>> raise_if_singular(torch.tensor([False]), "triangular_solve", "")
    """
    if not bool(singular.any()):
        return
    where = ""
    if singular.ndim:
        index = tuple(int(i) for i in singular.nonzero()[0])
        where = f" (batch index {index[0] if len(index) == 1 else index})"
    raise LinAlgError(
        f"strategy '{strategy}' needs a matrix of full rank, and this one is singular to working "
        f"precision{where}; {advice}"
    )


def raise_if_deficient(deficient: Tensor, strategy: str) -> None:
    """`raise_if_singular` where strategies that take any rank would do."""
    advice = "'qr_pinv' and 'svd_truncated_pinv' take any rank in pinv and lstsq"
    raise_if_singular(deficient, strategy, advice)
