"""What the operations themselves return, exactly, in ball arithmetic."""

from flint import arb

from strategies.exact.balls import Matrix, join, scalar, strictly_lower, zeros
from strategies.exact.dual import Dual
from strategies.exact.lu import lu_factors
from strategies.exact.pinv import exact_pinv
from strategies.exact.problem import Problem


def solve_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return X = A⁻¹B."""
    a, b = problem.operands[:2]
    return (a.inv() * b,)


def inv_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return A⁻¹."""
    return (problem.operands[0].inv(),)


def pinv_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return A⁺."""
    return (exact_pinv(problem.operands[0], problem.profile),)


def lstsq_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return X = A⁺B."""
    a, b = problem.operands[:2]
    return (exact_pinv(a, problem.profile) * b,)


def det_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return det A as a 1×1 matrix."""
    a = problem.operands[0]
    is_zero = problem.profile is not None and not isinstance(a, Dual)
    return (scalar(arb(0) if is_zero else a.det(), a),)


def slogdet_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return the sign, where it is no constant, and log|det A|, as 1×1 matrices."""
    a = problem.operands[0]
    det = a.det()
    logarithm = scalar(abs(det).log(), a)
    is_real = isinstance(det.value if isinstance(det, Dual) else det, arb)
    return (logarithm,) if is_real else (scalar(det.sgn(), a), logarithm)


def lu_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return L and U of a matrix of full rank whose rows are pivoted in the problem's order."""
    assert problem.order is not None
    return lu_factors(problem.operands[0], problem.order)


def lu_factor_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return the same packed: L below the diagonal, U on and above it."""
    L, U = lu_result(problem)
    m, n, k = L.nrows(), U.ncols(), L.ncols()
    below = strictly_lower(L)
    if m >= n:
        return (below + join(U, zeros(U, k, 0), zeros(U, m - k, k), zeros(U, m - k, 0)),)
    return (U + join(below, zeros(L, k, n - k), zeros(L, 0, k), zeros(L, 0, n - k)),)
