"""How accurate a strategy's gradients are promised to be, with the reason where it is less than full.

The promise of the first class, and of any strategy that is not listed: on a well-posed problem the
error is below `PASS_BELOW` times what rounding explains (`measures.amplification`). An entry of the
table raises that limit for one operation of one strategy by a factor that is computed from A.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.accuracy.measures import PASS_BELOW, condition_number, unit_roundoff

__all__ = [
    "FIRST",
    "WELL_POSED",
    "AccuracyClass",
    "OutsideClassError",
    "class_of",
    "judge",
    "listed",
]

WELL_POSED = (
    "diagonal",
    "upper_triangular",
    "lower_triangular",
    "random_condition_2",
    "random_condition_root",
    "graded_rows",
    "graded_columns",
    "kahan",
    "wilkinson_growth",
    "repeated_singular_values",
)
"""Names in the gallery of full rank whose every gradient is representable, and where κ u ≪ 1."""


class OutsideClassError(AssertionError):
    """An error is larger than the strategy's class allows; the message says by how much."""


@dataclass(frozen=True)
class AccuracyClass:
    """What an operation's gradient by a strategy may lose beyond rounding.

    Attributes:
        name: in a word or two.
        reason: why no better is to be expected.
        factor: by how much the limit is raised for this A, 1 or more.
    """

    name: str
    reason: str
    factor: Callable[[Tensor], float]

    def limit(self, matrix: Tensor) -> float:
        """The error ratio up to which a gradient at this A is in its class."""
        return PASS_BELOW * self.factor(matrix)


def _squared(matrix: Tensor) -> float:
    m, n = matrix.shape[-2:]
    return 1.0 if m == n else float(condition_number(matrix).max())


def _growth(matrix: Tensor) -> float:
    """Wilkinson's growth factor max|U| / max|A| (Higham 2002, section 9.3), where A is square."""
    m, n = matrix.shape[-2:]
    if m != n or matrix.numel() == 0:
        return 1.0
    wide = matrix.detach().to(torch.complex128 if matrix.is_complex() else torch.float64)
    upper = torch.linalg.lu_factor_ex(wide)[0].triu().abs().amax((-2, -1))
    return max(1.0, float((upper / wide.abs().amax((-2, -1))).max()))


FIRST = AccuracyClass("full", "as good as the problem's conditioning allows", lambda _: 1.0)

_GRAM = AccuracyClass(
    "κ²",
    "forms AᴴA where A is not square: its condition number is κ(A)² (Higham 2002, section 20.4)",
    _squared,
)
_SOLVE = AccuracyClass(
    "growth",
    "solves with LU factors, whose backward error is the element growth times u (Higham 2002, "
    "theorem 9.4): 2ⁿ⁻¹ on Wilkinson's matrix, of order 1 in practice",
    _growth,
)
_ORTHOGONAL_OF_U = AccuracyClass(
    "growth",
    "an orthogonal factorization of U is accurate relative to ‖U‖, not row by row, and U holds the "
    "element growth; substitution does not notice the scaling of rows (Higham 2002, section 8.2)",
    _growth,
)

_BY_LU = dict.fromkeys(("pinv", "lstsq", "solve", "inv"), _SOLVE)
_CLASSES: dict[str, dict[str, AccuracyClass]] = {
    "native": {"solve": _SOLVE},
    "triangular_solve": _BY_LU,
    "blocked_lu": _BY_LU,
    "batch_last": _BY_LU,
    "explicit_inverse": dict.fromkeys(("pinv", "lstsq"), _GRAM),
    "qr_pinv": dict.fromkeys(("det", "slogdet"), _ORTHOGONAL_OF_U),
    "svd_truncated_pinv": dict.fromkeys(("det", "slogdet"), _ORTHOGONAL_OF_U),
}


def class_of(strategy: str, operation: str) -> AccuracyClass:
    """The class of a strategy's gradients of an operation; `FIRST` for whatever is not listed.

    Example:
        >>> class_of("explicit_inverse", "lstsq").name
        'κ²'
        >>> class_of("somebody_elses", "lstsq").name
        'full'
    """
    return _CLASSES.get(strategy, {}).get(operation, FIRST)


def listed() -> list[tuple[str, str, AccuracyClass]]:
    """Every exception: strategy, operation, class.

    Example:
        >>> ("native", "solve") in [entry[:2] for entry in listed()]
        True
    """
    return [(name, operation, c) for name, of in _CLASSES.items() for operation, c in of.items()]


def judge(strategy: str, operation: str, matrix: Tensor, ratio: Callable[[], float]) -> float:
    """Require that a gradient is in its class.

    Where a class promises not one digit for this A, the strategy may refuse it.

    Args:
        strategy: a name.
        operation: a name.
        matrix: A.
        ratio: computes the gradient and its error ratio, or raises LinAlgError.

    Returns:
        The ratio; NaN for a legitimate refusal.

    Raises:
        OutsideClassError: the ratio is above the limit of the class.
        torch.linalg.LinAlgError: refused where the class promises digits.
    """
    accuracy_class = class_of(strategy, operation)
    limit = accuracy_class.limit(matrix)
    promised_error = limit * float(condition_number(matrix).max()) * unit_roundoff(matrix.dtype)
    try:
        found = ratio()
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        if accuracy_class is FIRST or promised_error < 1:
            raise
        return math.nan
    if not found < limit:
        raise OutsideClassError(
            f"{operation} by {strategy}: the error is {found:.2g} times what rounding explains; its "
            f"class '{accuracy_class.name}' allows {limit:.2g} here"
        )
    return found
