"""What the operations themselves return, exactly, in ball arithmetic."""

from flint import acb_mat

from strategies.exact.balls import Matrix
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
    return (type(a)(1, 1, [a.det() if problem.profile is None else 0]),)


def slogdet_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return the sign, where it is no constant, and log|det A|, as 1×1 matrices."""
    a = problem.operands[0]
    det = a.det()
    logarithm = type(a)(1, 1, [abs(det).log()])
    return (type(a)(1, 1, [det.sgn()]), logarithm) if isinstance(a, acb_mat) else (logarithm,)
