"""The Cholesky factorization, what is computed from its factor, and their gradients, in ball arithmetic.

A = L₁ U without pivoting gives L = L₁ D^(1/2) with D the diagonal of U, and the inverses of L₁ and U are
enclosed as for LU. Of A and of L only the lower triangle is read, and the real part of its diagonal.
"""

from strategies.exact.balls import Matrix, UnresolvedError, adjoint, diagonal, lower, strictly_lower
from strategies.exact.dual import Dual
from strategies.exact.lu import enclosed_inverses


def cholesky(a: Matrix) -> tuple[Matrix, Matrix]:
    """Return L and L⁻¹ of A = L Lᴴ; ValueError if A is certainly not positive definite."""
    a = lower(a) + adjoint(strictly_lower(a))
    unit_inverse, upper_inverse = enclosed_inverses(a)
    inverse = _root(diagonal(lower(upper_inverse))) * unit_inverse
    return lower(a * adjoint(inverse)), inverse


def cholesky_gradient(a: Matrix, cotangent: Matrix) -> Matrix:
    """Return the Hermitian gradient of L."""
    factor, inverse = cholesky(a)
    middle = adjoint(factor) * lower(cotangent)
    halved = strictly_lower(middle) + diagonal(middle) / 2
    product = adjoint(inverse) * halved * inverse
    return (product + adjoint(product)) / 2


def solve(factor: Matrix, rhs: Matrix) -> Matrix:
    """Return (L Lᴴ)⁻¹ B."""
    inverse = lower(factor).inv()
    return adjoint(inverse) * (inverse * rhs)


def solve_gradient(factor: Matrix, rhs: Matrix, cotangent: Matrix) -> tuple[Matrix, Matrix]:
    """Return the gradients of L and B, the former lower triangular."""
    x, w = solve(factor, rhs), solve(factor, cotangent)
    outer = w * adjoint(x)
    return lower(-(outer + adjoint(outer)) * lower(factor)), w


def inverse(factor: Matrix) -> Matrix:
    """Return (L Lᴴ)⁻¹."""
    of_factor = lower(factor).inv()
    return adjoint(of_factor) * of_factor


def inverse_gradient(factor: Matrix, cotangent: Matrix) -> Matrix:
    """Return the gradient of L, lower triangular."""
    of_matrix = inverse(factor)
    both = cotangent + adjoint(cotangent)
    return lower(-(of_matrix * both * of_matrix) * lower(factor))


def _root(scales: Matrix) -> Matrix:
    """Return the square root of a real diagonal matrix that has to be positive."""
    if isinstance(scales, Dual):
        root = _root(scales.value)
        return Dual(root, root.inv() * scales.tangent / 2)
    root = scales * 0
    for i in range(scales.nrows()):
        scale = scales[i, i].real
        if scale < 0:
            raise ValueError("the matrix is not positive definite")
        if not scale > 0:
            raise UnresolvedError("the sign of a pivot is not resolved")
        root[i, i] = scale.sqrt()
    return root
