"""The exact gradients of the pseudoinverse and of least squares, in ball arithmetic.

Everything goes through S = (AᴴA)⁺, whose size is that of the smaller dimension (wide matrices
use (AAᴴ)⁺): squaring the condition number costs bits, not accuracy, and no m×m array exists.
"""

from collections.abc import Sequence
from typing import NamedTuple

from strategies.exact.balls import Matrix, adjoint, select, zeros


class Profile(NamedTuple):
    """Rows and columns that meet in a nonsingular matrix of the full matrix's rank."""

    rows: Sequence[int]
    columns: Sequence[int]


def pinv_gradient(a: Matrix, cotangent: Matrix, profile: Profile | None) -> Matrix:
    """Return the gradient of A⁺ at a rank that does not change.

    Golub & Pereyra 1973, eq. 4.12, in terms of S: with W = Gᴴ, A⁺ = S Aᴴ and K = A⁺ W it reads
    Ā = W S + A (S K (I − S AᴴA) − K S − S Kᴴ).

    Args:
        a: m×n.
        cotangent: G, n×m.
        profile: None at full rank.

    Raises:
        ZeroDivisionError: more bits are needed, or the rank is lower than declared.
        ValueError: the rank is certainly higher than declared.
    """
    if a.nrows() < a.ncols():
        flipped = None if profile is None else Profile(profile.columns, profile.rows)
        return adjoint(pinv_gradient(adjoint(a), adjoint(cotangent), flipped))
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

    With X = A⁺B, Z = A⁺ᴴG, w = A⁺Z and R = B − AX (design, section 4.3): B̄ = Z and
    Ā = −Z Xᴴ + R wᴴ + (A⁺ᴴX)(G − A⁺AG)ᴴ.

    Args:
        a: m×n.
        b: m×k.
        cotangent: G, n×k.
        profile: None at full rank.

    Raises:
        ZeroDivisionError: more bits are needed, or the rank is lower than declared.
        ValueError: the rank is certainly higher than declared.
    """
    inverse = _PseudoInverse(a, profile)
    x = inverse.apply(b)
    z = inverse.apply_adjoint(cotangent)
    residual = b - a * x
    a_bar = (
        residual * adjoint(inverse.apply(z))
        - z * adjoint(x)
        + inverse.apply_adjoint(x) * adjoint(cotangent - inverse.apply(a * cotangent))
    )
    return a_bar, z


class _PseudoInverse:
    """A⁺ as S Aᴴ where A is tall and as Aᴴ (AAᴴ)⁺ where it is wide."""

    def __init__(self, a: Matrix, profile: Profile | None) -> None:
        self._a, self._adjoint = a, adjoint(a)
        self._tall = a.nrows() >= a.ncols()
        if self._tall:
            self._s = _gram_pinv(a, self._adjoint * a, profile)
        else:
            flipped = None if profile is None else Profile(profile.columns, profile.rows)
            self._s = _gram_pinv(self._adjoint, a * self._adjoint, flipped)

    def apply(self, b: Matrix) -> Matrix:
        return self._s * (self._adjoint * b) if self._tall else self._adjoint * (self._s * b)

    def apply_adjoint(self, x: Matrix) -> Matrix:
        return self._a * (self._s * x) if self._tall else self._s * (self._a * x)


def _gram_pinv(a: Matrix, gram: Matrix, profile: Profile | None) -> Matrix:
    """Return (AᴴA)⁺ from the full rank factorization A = C F.

    C holds the independent columns, F = A[rows, columns]⁻¹ A[rows, :], F⁺ = Fᴴ(FFᴴ)⁻¹, and
    (AᴴA)⁺ = A⁺A⁺ᴴ = F⁺ (CᴴC)⁻¹ F⁺ᴴ since A⁺ = F⁺C⁺.
    """
    if profile is None:
        return gram.inv()
    rows, columns = profile
    if not columns:
        return zeros(gram, gram.nrows(), gram.ncols())
    c = select(a, range(a.nrows()), columns)
    f = select(a, rows, columns).inv() * select(a, rows, range(a.ncols()))
    if not (a - c * f).contains(zeros(a, a.nrows(), a.ncols())):
        raise ValueError(f"the matrix has a rank above {len(columns)}")
    f_pinv = adjoint(f) * (f * adjoint(f)).inv()
    return f_pinv * (adjoint(c) * c).inv() * adjoint(f_pinv)
