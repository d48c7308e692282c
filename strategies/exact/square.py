"""The exact results and gradients of solve, inv, det and slogdet, in ball arithmetic."""

from flint import arb

from strategies.exact.balls import Matrix, adjoint, scalar, select, zeros
from strategies.exact.dual import Dual, adjugate
from strategies.exact.problem import Problem
from strategies.exact.rank import Profile


def solve_gradient(a: Matrix, b: Matrix, cotangent: Matrix) -> tuple[Matrix, Matrix]:
    """Return the gradients of X = A⁻¹B: B̄ = A⁻ᴴG and Ā = −B̄Xᴴ."""
    inverse = a.inv()
    b_bar = adjoint(inverse) * cotangent
    return -(b_bar * adjoint(inverse * b)), b_bar


def inv_gradient(a: Matrix, cotangent: Matrix) -> Matrix:
    """Return the gradient of A⁻¹: −A⁻ᴴ G A⁻ᴴ."""
    inverse_adjoint = adjoint(a.inv())
    return -(inverse_adjoint * cotangent * inverse_adjoint)


def det_gradient(a: Matrix, cotangent: Matrix, profile: Profile | None) -> Matrix:
    """Return the gradient of det A: g · adj(A)ᴴ, at every rank.

    adj(A) is det(A) A⁻¹ at full rank and zero at corank two or more. At corank one it is the
    outer product x yᵀ of the null vectors of A and Aᵀ, scaled: normalized to one at the left-out
    column j and row i, the scale is the cofactor (−1)^(i+j) det A[rows, columns]. The profile is
    None at full rank. What it says holds at the matrix alone and not nearby: where a derivative is
    asked for as well, adj(A) is taken as the polynomial that it is.
    """
    if isinstance(a, Dual):
        return adjoint(adjugate(a)) * cotangent[0, 0]
    size = a.nrows()
    if profile is None:
        return adjoint(a.inv() * a.det()) * cotangent[0, 0]
    rows, columns = profile
    if len(rows) < size - 1:
        return zeros(a, size, size)
    (i,) = set(range(size)) - set(rows)
    (j,) = set(range(size)) - set(columns)
    core, x, y = select(a, rows, columns), zeros(a, size, 1), zeros(a, 1, size)
    core_inverse = core.inv()
    right, left = core_inverse * select(a, rows, [j]), select(a, [i], columns) * core_inverse
    for position, (row, column) in enumerate(zip(rows, columns, strict=True)):
        x[column, 0], y[0, row] = -right[position, 0], -left[0, position]
    x[j, 0], y[0, i] = 1, 1
    cofactor = (-1) ** (i + j) * core.det()
    return adjoint(x * y * cofactor) * cotangent[0, 0]


def slogdet_gradient(a: Matrix, sign_cotangent: Matrix, cotangent: Matrix) -> Matrix:
    """Return the gradient of (sign, logabsdet): c A⁻ᴴ.

    With t = tr(A⁻¹E), logabsdet changes by Re t and sign by i·sign·Im t, so
    c = g − i Im(conj(g_sign) sign). The sign of a real matrix does not move.
    """
    turn = adjoint(sign_cotangent) * a.det().sgn()
    factor = cotangent - (turn - adjoint(turn)) / 2
    return adjoint(a.inv()) * factor[0, 0]


def solve_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return X = A⁻¹B."""
    a, b = problem.operands[:2]
    return (a.inv() * b,)


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
