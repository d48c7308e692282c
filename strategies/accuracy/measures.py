"""How an error is judged: as a multiple of what rounding explains, and by a strategy's accuracy class.

Rounding the inputs alone moves a gradient by about amplification · u, relative to its norm, where u
is the unit roundoff of the tested dtype.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from strategies import operations
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import FULL, AccuracyClass
from strategies.formulas.amplification import condition_number, unit_roundoff
from strategies.strategy import Strategy

PASS_BELOW = 30.0
"""The error ratio from which LAPACK's test programs report a failure (LAPACK Working Note 41)."""


def amplification(
    operation: str,
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    *,
    rank: int | None = None,
) -> Tensor:
    """By how much a gradient magnifies rounding errors of size u, to first order, (...).

    It takes what `strategies.accuracy.gradient` does; the estimates are those of
    `strategies.formulas.amplification`.
    """
    estimate = operations.get(operation).amplification
    return estimate(inputs, cotangents, rank) if estimate else condition_number(inputs[0], rank)


def error_ratio(error: Tensor | float, amplification: Tensor | float, dtype: torch.dtype) -> float:
    """The largest error / (amplification · u), infinite for NaN: below `PASS_BELOW` is good."""
    ratios = torch.as_tensor(error, dtype=torch.float64) / (
        torch.as_tensor(amplification, dtype=torch.float64) * unit_roundoff(dtype)
    )
    return float(ratios.nan_to_num(nan=math.inf, posinf=math.inf).max()) if ratios.numel() else 0.0


class OutsideClassError(AssertionError):
    """An error is larger than the strategy's class allows; the message says by how much."""


def class_of(strategy: Strategy, operation: str) -> AccuracyClass:
    """The class of a strategy's gradients of an operation; `FULL` where it declares none."""
    return strategy.accuracy.get(operations.get(operation).stem, FULL)


def judge(strategy: Strategy, operation: str, matrix: Tensor, ratio: Callable[[], float]) -> float:
    """Require that the gradient at A is in its class.

    `ratio` computes the gradient and its error ratio, which is returned, or raises LinAlgError: a
    strategy may refuse A where its class promises not one digit, for which NaN is returned, and nowhere
    else. OutsideClassError if the ratio is above the limit of the class.
    """
    accuracy_class = class_of(strategy, operation)
    limit = PASS_BELOW * accuracy_class.factor(matrix)
    try:
        found = ratio()
    except LinAlgError:
        explained = float(condition_number(matrix).max()) * unit_roundoff(matrix.dtype)
        if accuracy_class is FULL or limit * explained < 1:
            raise
        return math.nan
    if not found < limit:
        raise OutsideClassError(
            f"{operation} by {strategy.name}: the error is {found:.2g} times what rounding "
            f"explains; its accuracy class '{accuracy_class.name}' allows {limit:.2g} here"
        )
    return found
