"""The functions that `strategies.lanes.launch` runs, by name."""

from strategies.lanes.kernels.backward import inv, inverse_adjoint, lstsq, lu, pinv, solve
from strategies.lanes.kernels.inspection import (
    canonicalize,
    determinant,
    inverse_order,
    last_pivot_is_small,
    rest_is_roundoff,
)

__all__ = [
    "canonicalize",
    "determinant",
    "inv",
    "inverse_adjoint",
    "inverse_order",
    "last_pivot_is_small",
    "lstsq",
    "lu",
    "pinv",
    "rest_is_roundoff",
    "solve",
]
