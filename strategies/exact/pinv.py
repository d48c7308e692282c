"""The exact pseudoinverse and least squares with their gradients, in ball arithmetic.

Everything goes through S = (AᴴA)⁺, whose size is that of the smaller dimension (wide matrices
use (AAᴴ)⁺): squaring the condition number costs bits, not accuracy, and no m×m array exists.
"""

from strategies.exact.balls import Matrix, adjoint, select, zeros
from strategies.exact.problem import Problem
from strategies.exact.rank import Profile


def pinv_gradient(a: Matrix, cotangent: Matrix, profile: Profile | None) -> Matrix:
    """Return the gradient of A⁺ at a rank that does not change.

    Golub & Pereyra 1973, eq. 4.12, in terms of S: with W = Gᴴ, A⁺ = S Aᴴ and K = A⁺ W it reads
    Ā = W S + A (S K (I − S AᴴA) − K S − S Kᴴ). The profile is None at full rank.
    """
    if a.nrows() < a.ncols():
        return adjoint(pinv_gradient(adjoint(a), adjoint(cotangent), profile and profile[::-1]))
    w, a_adjoint = adjoint(cotangent), adjoint(a)
    gram = a_adjoint * a
    s = _gram_pinv(a, gram, profile)
    k = s * (a_adjoint * w)
    sk = s * k
    inner = sk - sk * (s * gram) - k * s - s * adjoint(k)
    return w * s + a * inner


def lstsq_gradient(
    a: Matrix, b: Matrix, cotangent: Matrix, profile: Profile | None
) -> tuple[Matrix, Matrix]:
    """Return the gradients of A⁺B with respect to A and B at a rank that does not change.

    With X = A⁺B, Z = A⁺ᴴG, w = A⁺Z and R = B − AX: B̄ = Z and
    Ā = −Z Xᴴ + R wᴴ + (A⁺ᴴX)(G − A⁺AG)ᴴ. The profile is None at full rank.
    """
    inverse = exact_pinv(a, profile)
    x, z = inverse * b, adjoint(inverse) * cotangent
    a_bar = (
        (b - a * x) * adjoint(inverse * z)
        - z * adjoint(x)
        + (adjoint(inverse) * x) * adjoint(cotangent - inverse * (a * cotangent))
    )
    return a_bar, z


def exact_pinv(a: Matrix, profile: Profile | None) -> Matrix:
    """Return A⁺; the profile is None at full rank."""
    if a.nrows() < a.ncols():
        return adjoint(exact_pinv(adjoint(a), profile and profile[::-1]))
    return _gram_pinv(a, adjoint(a) * a, profile) * adjoint(a)


def lstsq_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return X = A⁺B."""
    a, b = problem.operands[:2]
    return (exact_pinv(a, problem.profile) * b,)


def _gram_pinv(a: Matrix, gram: Matrix, profile: Profile | None) -> Matrix:
    """Return (AᴴA)⁺ from the full rank factorization A = C F.

    C holds the independent columns, F = A[rows, columns]⁻¹ A[rows, :], F⁺ = Fᴴ(FFᴴ)⁻¹, and
    (AᴴA)⁺ = A⁺A⁺ᴴ = F⁺ (CᴴC)⁻¹ F⁺ᴴ since A⁺ = F⁺C⁺.
    """
    if profile is None:
        return gram.inv()
    rows, columns = profile
    c = select(a, range(a.nrows()), columns)
    f = select(a, rows, columns).inv() * select(a, rows, range(a.ncols()))
    if not (a - c * f).contains(zeros(a, a.nrows(), a.ncols())):
        raise ValueError(f"the matrix has a rank above {len(columns)}")
    f_pinv = adjoint(f) * (f * adjoint(f)).inv()
    return f_pinv * (adjoint(c) * c).inv() * adjoint(f_pinv)
