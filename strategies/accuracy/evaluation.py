"""One matrix, one exact gradient: the precision is raised until the certificate holds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from strategies.accuracy.certified import Certified, ScaledPair
from strategies.exact.balls import Matrix, UnresolvedError, exact, radius_bound
from strategies.exact.lu import lu_gradient
from strategies.exact.pinv import Profile, lstsq_gradient, pinv_gradient
from strategies.exact.rank import rank_profile
from strategies.exact.square import (
    det_gradient,
    inv_gradient,
    slogdet_gradient,
    solve_gradient,
)

_FIRST_BITS = 256
_LAST_BITS = 2**14
_HEADROOM = 2.0**-20
# Splitting into two floats and rounding the sum of the radii cost at most this.
_REPRESENTATION = 2.0**-104


@dataclass(frozen=True)
class Problem:
    """The gradient of one operation at one matrix.

    Attributes:
        operation: lu_factor, lu_at_factors, pinv, lstsq, solve, inv, det or slogdet.
        inputs: one or two arrays of one or two dimensions; for LU the rows are those of PᵀA.
        cotangents: one array for each output, of up to two dimensions.
        rank: the declared exact rank.
        order: for LU, where in A the rows of PᵀA come from; the gradient's rows go back there.
    """

    operation: str
    inputs: tuple[NDArray[Any], ...]
    cotangents: tuple[NDArray[Any], ...]
    rank: int
    order: NDArray[np.int64] | None


def certify(problem: Problem) -> Certified:
    """Evaluate at 256 bits, 512 bits, ... until the radius is small enough.

    Raises:
        ValueError: the rank is not the declared one.
        ArithmeticError: the limit of 16384 bits was reached.
    """
    if any(0 in array.shape for array in problem.inputs):
        return Certified(tuple(_empty(array) for array in problem.inputs), 0.0, 0)
    target = _HEADROOM * float(np.finfo(problem.inputs[0].dtype).eps) / 2
    bits, explained = _FIRST_BITS, False
    while bits <= _LAST_BITS:
        try:
            result = evaluate(problem, bits)
        except (ZeroDivisionError, UnresolvedError):
            if not explained:
                _explain_singularity(problem)
                explained = True
        else:
            if result.radius <= target:
                return result
        bits *= 2
    raise ArithmeticError(f"{problem.operation}: {_LAST_BITS} bits do not certify the gradient")


def evaluate(problem: Problem, bits: int) -> Certified:
    """Evaluate the gradient once, at this precision, whatever its radius.

    Raises:
        ZeroDivisionError: the precision is too low, or the rank lower than declared.
        UnresolvedError: the precision is too low.
        ValueError: the rank is not the declared one.
    """
    with ctx.workprec(bits):
        split = [_split(gradient) for gradient in _gradients(problem)]
    if problem.order is not None:
        inverse = np.argsort(problem.order)
        split = [
            (ScaledPair(p.high[inverse], p.low[inverse], p.exponent, p.shape), radius)
            for p, radius in split
        ]
    parts, radii = zip(*split, strict=True)
    return Certified(parts, max(radii), bits)


def _gradients(problem: Problem) -> tuple[Matrix, ...]:
    matrix, rank = problem.inputs[0], problem.rank
    operands = [
        _exact_matrix(array, np.iscomplexobj(matrix))
        for array in (*problem.inputs, *problem.cotangents)
    ]
    match problem.operation:
        case "lu_factor":
            permuted, g = operands
            return (lu_gradient(permuted, g, rank),)
        case "lu_at_factors":
            return (lu_gradient(_product_of_factors(matrix, rank), operands[1], rank),)
        case "pinv":
            a, g = operands
            return (pinv_gradient(a, g, _profile(problem)),)
        case "lstsq":
            a, b, g = operands
            return lstsq_gradient(a, b, g, _profile(problem))
        case "solve":
            a, b, g = operands
            return solve_gradient(a, b, g)
        case "inv":
            a, g = operands
            return (inv_gradient(a, g),)
        case "det":
            a, g = operands
            return (det_gradient(a, g, _profile(problem)),)
        case "slogdet":
            a, sign_g, g = operands
            return (slogdet_gradient(a, sign_g, g),)
    raise ValueError(f"unknown operation {problem.operation!r}")


def _exact_matrix(array: NDArray[Any], is_complex: bool) -> Matrix:
    """Hold a scalar as 1×1 and a vector as one column; real joins complex as complex."""
    matrix = array.reshape(1, 1) if array.ndim == 0 else array
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    return exact(matrix.astype(np.complex128) if is_complex else matrix)


def _product_of_factors(packed: NDArray[Any], rank: int) -> Matrix:
    lower = np.tril(packed, -1)[:, :rank]
    np.fill_diagonal(lower, 1)
    return exact(lower) * exact(np.triu(packed)[:rank])


def _profile(problem: Problem) -> Profile | None:
    matrix = problem.inputs[0]
    if problem.rank == min(matrix.shape):
        return None
    profile = Profile(*rank_profile(matrix))
    if len(profile.rows) != problem.rank:
        raise ValueError(f"the matrix has rank {len(profile.rows)}, not {problem.rank}")
    return profile


def _explain_singularity(problem: Problem) -> None:
    """Raise a clear error for a division by zero, if it is the matrix's, not the precision's."""
    matrix, declared = problem.inputs[0], problem.rank
    if problem.operation == "lu_at_factors":
        if not np.diagonal(matrix)[:declared].all():
            raise ValueError("U has a zero on its diagonal: declare the rank before it as rank=")
        return
    actual = len(rank_profile(matrix)[0])
    if actual != declared:
        raise ValueError(f"the matrix has rank {actual}, not {declared}: see the argument rank")
    if problem.operation == "lu_factor":
        leading = matrix[:declared, :declared]
        if len(rank_profile(leading)[0]) < declared:
            raise ValueError(
                f"the leading {declared}×{declared} block of the pivoted matrix is singular: "
                "its first columns depend on each other and LU has no gradient there"
            )


def _empty(array: NDArray[Any]) -> ScaledPair:
    matrix = array[:, None] if array.ndim == 1 else array
    zero = np.zeros_like(matrix, np.complex128 if np.iscomplexobj(matrix) else np.float64)
    return ScaledPair(zero, zero, np.array(0, np.int32), array.shape)


def _split(matrix: Matrix) -> tuple[ScaledPair, float]:
    """Round to two floats a number and one exponent; return the relative radius beside."""
    shape = (matrix.nrows(), matrix.ncols())
    exponent = _magnitude(matrix)
    scaled = matrix * arb(2) ** -exponent
    high = _rounded(scaled, shape)
    low = _rounded(scaled - exact(high), shape)
    norm, radius = float(np.linalg.norm(high)), radius_bound(scaled)
    if norm > 0:
        relative = float((radius / norm).real) * (1 + 2.0**-20) + _REPRESENTATION
    else:
        relative = 0.0 if radius == 0 else np.inf
    return ScaledPair(high, low, np.array(exponent, np.int32), shape), relative


def _rounded(matrix: Matrix, shape: tuple[int, int]) -> NDArray[Any]:
    number = complex if hasattr(matrix, "conjugate") else float
    return np.array([number(entry) for entry in matrix.entries()]).reshape(shape)


def _magnitude(matrix: Matrix) -> int:
    """Find the power of two just above the largest entry; zero for a zero matrix."""
    largest = float(np.abs(_rounded(matrix, (-1, 1)).view(np.float64)).max())
    if 2.0**-900 < largest < 2.0**900:
        return int(np.frexp(largest)[1])
    top = max((abs(entry).abs_upper() for entry in matrix.entries()), key=lambda x: x)
    if top == 0:
        return 0
    mantissa, power = top.man_exp()
    return int(mantissa.bit_length() + power)
