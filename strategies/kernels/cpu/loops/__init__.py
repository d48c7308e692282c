"""The functions that `strategies.kernels.cpu.launch` runs, by name."""

from strategies.kernels.cpu.loops.backward import inv, inverse_adjoint, lstsq, lu, pinv, solve
from strategies.kernels.cpu.loops.elimination import reverse_elimination
from strategies.kernels.cpu.loops.forward import (
    invert,
    pseudo_invert,
    solve_least_squares,
    solve_square,
)
from strategies.kernels.cpu.loops.inspection import (
    canonicalize,
    determinant,
    inverse_order,
    last_may_be_roundoff,
    pivot_may_be_zero,
    rest_is_roundoff,
)
from strategies.kernels.cpu.loops.least_squares import gram_by_rows, lstsq_by_rows

__all__ = [
    "canonicalize",
    "determinant",
    "gram_by_rows",
    "inv",
    "inverse_adjoint",
    "inverse_order",
    "invert",
    "last_may_be_roundoff",
    "lstsq",
    "lstsq_by_rows",
    "lu",
    "pinv",
    "pivot_may_be_zero",
    "pseudo_invert",
    "rest_is_roundoff",
    "reverse_elimination",
    "solve",
    "solve_least_squares",
    "solve_square",
]
