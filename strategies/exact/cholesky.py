"""The Cholesky factorization, what is computed from its factor, and their gradients, in ball arithmetic.

A = L₁ U without pivoting gives L = L₁ D^(1/2) with D the diagonal of U, and the inverses of L₁ and U are
enclosed as for LU. Of A and of L only the lower triangle is read, and the real part of its diagonal.
"""

from flint import arb

from strategies.exact.balls import Matrix, UnresolvedError, adjoint, strictly_lower, zeros
from strategies.exact.lu import enclosed_inverses


def cholesky(a: Matrix) -> tuple[Matrix, Matrix]:
    """Return L and L⁻¹ of A = L Lᴴ.

    Raises:
        ValueError: the matrix is certainly not positive definite.
    """
    a = _mirrored(a)
    unit_inverse, upper_inverse = enclosed_inverses(a)
    scales = [_real(upper_inverse[i, i]) for i in range(a.nrows())]
    if any(scale < 0 for scale in scales):
        raise ValueError("the matrix is not positive definite")
    if not all(scale > 0 for scale in scales):
        raise UnresolvedError("the sign of a pivot is not resolved")
    inverse = _diagonal(a, [scale.sqrt() for scale in scales]) * unit_inverse
    return _lower(a * adjoint(inverse)), inverse


def cholesky_gradient(a: Matrix, cotangent: Matrix) -> Matrix:
    """Return the Hermitian gradient of L."""
    factor, inverse = cholesky(a)
    middle = adjoint(factor) * _lower(cotangent)
    halved = strictly_lower(middle) + _diagonal(a, [middle[i, i] / 2 for i in range(a.nrows())])
    product = adjoint(inverse) * halved * inverse
    return (product + adjoint(product)) / 2


def solve(factor: Matrix, rhs: Matrix) -> Matrix:
    """Return (L Lᴴ)⁻¹ B."""
    inverse = _lower(factor).inv()
    return adjoint(inverse) * (inverse * rhs)


def solve_gradient(factor: Matrix, rhs: Matrix, cotangent: Matrix) -> tuple[Matrix, Matrix]:
    """Return the gradients of L and B, the former lower triangular."""
    x, w = solve(factor, rhs), solve(factor, cotangent)
    outer = w * adjoint(x)
    return _lower(-(outer + adjoint(outer)) * _lower(factor)), w


def inverse(factor: Matrix) -> Matrix:
    """Return (L Lᴴ)⁻¹."""
    of_factor = _lower(factor).inv()
    return adjoint(of_factor) * of_factor


def inverse_gradient(factor: Matrix, cotangent: Matrix) -> Matrix:
    """Return the gradient of L, lower triangular."""
    of_matrix = inverse(factor)
    both = cotangent + adjoint(cotangent)
    return _lower(-(of_matrix * both * of_matrix) * _lower(factor))


def _mirrored(a: Matrix) -> Matrix:
    """Return the Hermitian matrix with this lower triangle, of the diagonal the real part."""
    below = strictly_lower(a)
    return below + adjoint(below) + _diagonal(a, [_real(a[i, i]) for i in range(a.nrows())])


def _lower(a: Matrix) -> Matrix:
    """Keep what is below the diagonal, and of that the real part, which a Cholesky factor has alone."""
    return strictly_lower(a) + _diagonal(a, [_real(a[i, i]) for i in range(a.nrows())])


def _diagonal(like: Matrix, entries: list[arb]) -> Matrix:
    matrix = zeros(like, len(entries), len(entries))
    for i, entry in enumerate(entries):
        matrix[i, i] = entry
    return matrix


def _real(entry: arb) -> arb:
    return entry if isinstance(entry, arb) else entry.real
