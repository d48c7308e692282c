"""Whether a gradient is as accurate as its strategy declares (`Strategy.accuracy`)."""

import math
from collections.abc import Callable

from torch import Tensor

from strategies import operations
from strategies.accuracy.measures import PASS_BELOW
from strategies.errors import LinAlgError
from strategies.formulas.accuracy_classes import FULL, AccuracyClass
from strategies.formulas.amplification import condition_number, unit_roundoff
from strategies.strategy import Strategy


class OutsideClassError(AssertionError):
    """An error is larger than the strategy's class allows; the message says by how much."""


def class_of(strategy: Strategy, operation: str) -> AccuracyClass:
    """The class of a strategy's gradients of an operation; `FULL` where it declares none."""
    return strategy.accuracy.get(operations.get(operation).stem, FULL)


def judge(strategy: Strategy, operation: str, matrix: Tensor, ratio: Callable[[], float]) -> float:
    """Require that the gradient at A is in its class.

    `ratio` computes the gradient and its error ratio, which is returned, or raises LinAlgError: a
    strategy may refuse A where its class promises not one digit, for which NaN is returned.

    Raises:
        OutsideClassError: the ratio is above the limit of the class.
        torch.linalg.LinAlgError: refused where the class promises digits.
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
