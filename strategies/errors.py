"""The errors that are the project's own; everything else is what `torch.linalg` raises."""

from pathlib import Path

import torch
from torch import Tensor

LinAlgError = torch.linalg.LinAlgError  # type: ignore[attr-defined]  # missing from torch's stubs


class StrategyNotFoundError(LookupError):
    """No strategy has that name; the message lists the close ones."""


class UnsupportedError(NotImplementedError):
    """The strategy cannot do what it was asked; the message names one that can."""


def raise_if_not_finite(result: Tensor, matrix: Tensor) -> None:
    """Raise LinAlgError, as torch's `pinv` does, where NaN or Inf in a matrix has reached the result."""
    if not bool(torch.isfinite(result).all()) and not bool(torch.isfinite(matrix).all()):
        raise LinAlgError("the input matrix contained non-finite values")


def raise_if_singular(singular: Tensor, strategy: str, advice: str) -> None:
    """Raise LinAlgError where a matrix lacks the full rank that a strategy needs.

    `singular` has an entry for each matrix; the message names the first, and what would work instead.
    """
    if bool(singular.any()):
        raise LinAlgError(
            f"this matrix is singular to working precision{_first(singular)}, and strategy '{strategy}' "
            f"needs full rank; {advice}"
        )


def raise_if_deficient(deficient: Tensor, strategy: str) -> None:
    """`raise_if_singular` where strategies that take any rank would do."""
    advice = "'qr_pinv' and 'svd_truncated_pinv' take any rank in pinv and lstsq"
    raise_if_singular(deficient, strategy, advice)


def raise_if_grown(grown: Tensor, strategy: str) -> None:
    """`raise_if_singular` where the growth of elements in an elimination has cost digits."""
    if bool(grown.any()):
        raise LinAlgError(
            f"strategy '{strategy}' eliminates, and elements of this matrix grow so much in it that "
            f"digits are lost{_first(grown)}; 'qr_pinv' and 'svd_truncated_pinv' lose none"
        )


def raise_for_info(info: Tensor, message: str) -> None:
    """Raise LinAlgError for the first matrix whose LAPACK info, {0} in the message, is not zero."""
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


class UnusableFileError(ValueError):
    """A file that is missing, damaged, foreign or of another version, or cannot be written.

    The message is one line that names the file and what is wrong with it.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {' '.join(problem.split())}")
        self.path = path
        self.problem = problem
