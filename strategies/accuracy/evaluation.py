"""One matrix, its exact gradients: the precision is raised until the certificate holds."""

from typing import Any

import numpy as np
from flint import acb_mat, arb, ctx
from numpy.typing import NDArray

from strategies.accuracy.certified import Certified, ScaledPair
from strategies.exact import balls
from strategies.exact.balls import Matrix, UnresolvedError, radius_bound
from strategies.exact.problem import Formula, Problem

_PRECISIONS = [2**power for power in range(8, 15)]
_HEADROOM = 2.0**-20
# Splitting into two floats and rounding the sum of the radii cost at most this.
_REPRESENTATION = 2.0**-104


def certify(problem: Problem, exact: Formula) -> Certified:
    """Evaluate at 256 bits, 512 bits, ... until the proven radius is small enough.

    No input is empty; vectors come back as matrices of one column. ValueError if the rank is not the
    declared one, ArithmeticError if 16384 bits do not suffice.
    """
    target = _HEADROOM * float(np.finfo(problem.matrix.dtype).eps) / 2
    for bits in _PRECISIONS:
        try:
            result = evaluate(problem, exact, bits)
            if result.radius <= target:
                return result
        except (ZeroDivisionError, UnresolvedError):
            problem.explain_singularity()
    raise ArithmeticError(f"{_PRECISIONS[-1]} bits do not certify the gradient")


def evaluate(problem: Problem, exact: Formula, bits: int) -> Certified:
    """Evaluate the gradients once, at this precision, whatever their radius."""
    with ctx.workprec(bits):
        parts, radii = zip(*(_split(gradient) for gradient in exact(problem)), strict=True)
    return Certified(parts, max(radii), bits)


def _split(matrix: Matrix) -> tuple[ScaledPair, float]:
    """Round to two floats a number and one exponent; return the relative radius beside."""
    # The power of two just above the largest entry; zero for a zero matrix.
    mantissa, power = max(abs(entry).abs_upper() for entry in matrix.entries()).man_exp()
    exponent = int(mantissa.bit_length() + power)
    scaled = matrix * arb(2) ** -exponent
    high = rounded(scaled)
    low = rounded(scaled - balls.exact(high))
    norm, radius = float(np.linalg.norm(high)), radius_bound(scaled)
    if norm > 0:
        relative = float((radius / norm).real) * (1 + 2.0**-20) + _REPRESENTATION
    else:
        relative = 0.0 if radius == 0 else np.inf
    return ScaledPair(high, low, np.array(exponent, np.int32)), relative


def rounded(matrix: Matrix) -> NDArray[Any]:
    """The midpoints, each rounded once: float64 or complex128."""
    number = complex if isinstance(matrix, acb_mat) else float
    return np.array([[number(entry) for entry in row] for row in matrix.tolist()])
