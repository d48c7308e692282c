"""The order of rows by partial pivoting, where every library has to find the same."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MARGIN = 1.01
"""By how much a pivot exceeds the other candidates."""


def clear_order(matrix: NDArray[Any], rank: int) -> NDArray[np.int64] | None:
    """Where the pivoted rows come from, the first `rank` of them pivots; None if a choice is close.

    Of complex numbers some libraries compare moduli, others |Re| + |Im|: both have to agree.
    """
    rest = matrix.astype(np.result_type(matrix, np.float64))
    order = np.arange(len(matrix))
    for step in range(rank):
        column = rest[step:, step]
        choices = set()
        for sizes in (abs(column), abs(column.real) + abs(column.imag)):
            first = int(np.argmax(sizes))
            if sizes[first] <= _MARGIN * max(np.delete(sizes, first), default=0.0):
                return None
            choices.add(step + first)
        if len(choices) > 1 or not column.any():
            return None
        (pivot,) = choices
        for rows in (rest, order):
            rows[[step, pivot]] = rows[[pivot, step]]
        factors = rest[step + 1 :, step] / rest[step, step]
        rest[step + 1 :] -= np.outer(factors, rest[step])
    return order
