"""What a strategy's gradients may lose beyond rounding: the classes that strategies declare.

κ is the condition number σ₁/σ_r of A and u the unit roundoff. On a well-posed problem an error in
the class `FULL` stays below a constant times what rounding explains (`strategies.formulas.amplification`).
Any other class raises that limit by a factor that is computed from A.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from strategies.formulas.amplification import condition_number, normalized


@dataclass(frozen=True)
class AccuracyClass:
    """What an operation's gradient by a strategy may lose beyond rounding.

    Attributes:
        name: in a word or two.
        reason: why no better is to be expected, with a source.
        factor: from A, (..., m, n), to the number by which the limit is raised, 1 or more.

    Example:
        >>> NORMAL_EQUATIONS.factor(torch.tensor([[8.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
        4.0
    """

    name: str
    reason: str
    factor: Callable[[Tensor], float]


def _condition_where_not_square(matrix: Tensor) -> float:
    m, n = matrix.shape[-2:]
    return 1.0 if m == n else float(condition_number(matrix).max())


def _growth(matrix: Tensor) -> float:
    """Wilkinson's growth factor max|U| / max|A| (Higham 2002, section 9.3), where A is square."""
    m, n = matrix.shape[-2:]
    if m != n or matrix.numel() == 0:
        return 1.0
    wide, _ = normalized(matrix)
    upper = torch.linalg.lu_factor_ex(wide)[0].triu().abs().amax((-2, -1))
    return max(1.0, float((upper / wide.abs().amax((-2, -1))).max()))


FULL = AccuracyClass("full", "as good as the problem's conditioning allows", lambda _: 1.0)
"""The class of every operation for which a strategy declares none."""

NORMAL_EQUATIONS = AccuracyClass(
    "κ²",
    "forms AᴴA where A is not square: its condition number is κ(A)² (Higham, *Accuracy and "
    "Stability of Numerical Algorithms*, 2nd ed. 2002, section 20.4)",
    _condition_where_not_square,
)

ELEMENT_GROWTH = AccuracyClass(
    "growth",
    "solves with LU factors, whose backward error is the element growth times u (Higham 2002, "
    "theorem 9.4): 2ⁿ⁻¹ on Wilkinson's matrix, of order 1 in practice",
    _growth,
)

ORTHOGONAL_FACTOR_OF_U = AccuracyClass(
    "growth",
    "an orthogonal factorization of U is accurate relative to ‖U‖, not row by row, and U holds the "
    "element growth; substitution does not notice the scaling of rows (Higham 2002, section 8.2)",
    _growth,
)

SOLVES_SQUARE_WITH_LU: Mapping[str, AccuracyClass] = {"solve": ELEMENT_GROWTH}
"""The declaration of a strategy that uses LU factors in `solve` alone."""

SOLVES_WITH_LU: Mapping[str, AccuracyClass] = dict.fromkeys(
    ("pinv", "lstsq", "solve", "inv"), ELEMENT_GROWTH
)
"""The declaration of a strategy that factors square matrices by LU."""

SOLVES_NORMAL_EQUATIONS: Mapping[str, AccuracyClass] = dict.fromkeys(
    ("pinv", "lstsq"), NORMAL_EQUATIONS
)
"""The declaration of a strategy that inverts AᴴA where A is not square."""

FACTORS_U_ORTHOGONALLY: Mapping[str, AccuracyClass] = {"det": ORTHOGONAL_FACTOR_OF_U}
"""The declaration of a strategy that holds every factor by QR or SVD, the U of det included."""
