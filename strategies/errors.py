"""The errors that are the project's own; everything else is what `torch.linalg` raises."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = [
    "LinAlgError",
    "StrategyNotFoundError",
    "UnsupportedError",
    "message_of",
    "raise_for_info",
    "raise_if_deficient",
    "raise_if_grown",
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
        torch.linalg.LinAlgError: naming the strategy and, as torch counts them, the first such matrix.

    Example:
        >>> raise_if_singular(torch.tensor([False]), "triangular_solve", "")
    """
    if bool(singular.any()):
        raise LinAlgError(
            f"strategy '{strategy}' needs a matrix of full rank, and this one is singular to working "
            f"precision{_first(singular)}; {advice}"
        )


def raise_if_deficient(deficient: Tensor, strategy: str) -> None:
    """`raise_if_singular` where strategies that take any rank would do."""
    advice = "'qr_pinv' and 'svd_truncated_pinv' take any rank in pinv and lstsq"
    raise_if_singular(deficient, strategy, advice)


def raise_if_grown(grown: Tensor, strategy: str) -> None:
    """Raise where the growth of elements in an elimination has cost digits.

    Args:
        grown: boolean, one entry a matrix (any batch shape).
        strategy: the name of the strategy that eliminates.

    Raises:
        torch.linalg.LinAlgError: naming the strategy and the first such matrix.

    Example:
        >>> raise_if_grown(torch.tensor([False]), "triangular_solve")
    """
    if bool(grown.any()):
        raise LinAlgError(
            f"strategy '{strategy}' eliminates, and elements of this matrix grow so much in it that "
            f"digits are lost{_first(grown)}; 'qr_pinv' and 'svd_truncated_pinv' lose none"
        )


def raise_for_info(info: Tensor, message: str) -> None:
    """Raise what LAPACK says of the first matrix where `info`, int (...), is not zero.

    Args:
        info: as LAPACK returns it, for each matrix.
        message: with `{0}` in place of the number.

    Example:
        >>> raise_for_info(torch.zeros(3), "minor {0} is not positive")
    """
    if bool(info.any()):
        index = int(info.flatten().nonzero()[0])
        batch = f"(Batch element {index}): " if info.ndim else ""
        raise LinAlgError(batch + message.format(int(info.flatten()[index])))


def _first(flags: Tensor) -> str:
    """Which matrix of a batch is the first, as torch counts them."""
    return f" (Batch element {int(flags.flatten().nonzero()[0])})" if flags.ndim else ""


def message_of(error: BaseException) -> str:
    """An error of foreign code in one line, whatever its `__str__` does.

    Example:
        >>> message_of(ValueError("two   words"))
        'ValueError: two words'
    """
    try:
        said = " ".join(str(error).split())
    except Exception as another:  # noqa: BLE001 - foreign code
        said = f"its message raises {type(another).__name__}"
    return f"{type(error).__name__}: {said}"
