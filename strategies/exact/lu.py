"""The exact LU factorization and its gradient, in ball arithmetic.

Elimination with balls loses more than a bit a column. The factors are therefore approximated
first, on midpoints alone, and enclosed afterwards: with approximate inverses Y ≈ L⁻¹ and Z ≈ U⁻¹,
exactly unit lower and upper triangular, T = Y A Z = I + E has a tiny, rigorously bounded E.

Let T = (I + X)(I + V) be its LU factorization, X strictly lower and V upper triangular. Then
X + V = E − XV, and as X and V share no entry, s = ‖X + V‖_F satisfies ‖X‖‖V‖ ≤ s²/2 and hence
s ≤ ‖E‖ + s²/2. Following tE from t = 0 to 1, s stays on the smaller branch,
s ≤ 1 − √(1 − 2‖E‖) ≤ 2‖E‖ while ‖E‖_F ≤ 1/4, and both (I + X)⁻¹ and (I + V)⁻¹ lie
within 2‖E‖/(1 − 2‖E‖) ≤ 4‖E‖ of I. Finally L⁻¹ = (I + X)⁻¹ Y and U⁻¹ = Z (I + V)⁻¹.
"""

import numpy as np
from flint import acb, acb_mat, arb
from numpy.typing import NDArray

from strategies.exact.balls import (
    Matrix,
    UnresolvedError,
    adjoint,
    blocks,
    identity,
    join,
    norm_bound,
    select,
    strictly_lower,
    upper,
    zeros,
)
from strategies.exact.dual import Dual
from strategies.exact.problem import Problem


def lu_gradient(
    matrix: Matrix,
    lower_cotangent: Matrix,
    upper_cotangent: Matrix,
    rank: int,
    order: NDArray[np.int64] | None,
) -> Matrix:
    """Return the gradient of the factors L and U of PᵀA with respect to A, m×n.

    The leading `rank` rows and columns, whose block is nonsingular, determine the factors
    (docs/mathematics.md, LU); the trailing block follows from them and gets no gradient. Of the
    cotangents only L's strict lower and U's upper triangle count, so the packed one serves as both.
    `order` says where in A the rows of PᵀA come from; None means that P is the identity.
    """
    m, n = matrix.nrows(), matrix.ncols()
    if rank == 0:
        return zeros(matrix, m, n)
    order = np.arange(m) if order is None else order
    leading, below, right = range(rank), range(rank, m), range(rank, n)
    (l1, u1, l2, u2), (l1_inverse, u1_inverse), a22 = _eliminated(matrix, order, rank)
    if not (a22 - l2 * u2).contains(zeros(a22, a22.nrows(), a22.ncols())):
        raise ValueError(f"the matrix has a rank above {rank}: the trailing block is not zero")
    a21_bar = select(lower_cotangent, below, leading) * adjoint(u1_inverse)
    a12_bar = adjoint(l1_inverse) * select(upper_cotangent, leading, right)
    l1_bar = strictly_lower(select(lower_cotangent, leading, leading) - a12_bar * adjoint(u2))
    u1_bar = upper(select(upper_cotangent, leading, leading) - adjoint(l2) * a21_bar)
    middle = strictly_lower(adjoint(l1) * l1_bar) + upper(u1_bar * adjoint(u1))
    a11_bar = adjoint(l1_inverse) * middle * adjoint(u1_inverse)
    permuted = join(a11_bar, a12_bar, a21_bar, zeros(a22, a22.nrows(), a22.ncols()))
    return select(permuted, np.argsort(order).tolist(), range(n))


def lu_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return L and U of a matrix of full rank whose rows are pivoted in the problem's order."""
    assert problem.order is not None
    k = min(problem.matrix.shape)
    (l1, u1, l2, u2), *_ = _eliminated(problem.operands[0], problem.order, k)
    return (
        join(l1, zeros(l1, k, 0), l2, zeros(l1, l2.nrows(), 0)),
        join(u1, u2, zeros(u1, 0, k), zeros(u1, 0, u2.ncols())),
    )


def lu_factor_result(problem: Problem) -> tuple[Matrix, ...]:
    """Return the same packed: L below the diagonal, U on and above it."""
    assert problem.order is not None
    k = min(problem.matrix.shape)
    (l1, u1, l2, u2), *_ = _eliminated(problem.operands[0], problem.order, k)
    return (join(strictly_lower(l1) + u1, u2, l2, zeros(u1, l2.nrows(), u2.ncols())),)


def _eliminated(
    matrix: Matrix, order: NDArray[np.int64], rank: int
) -> tuple[tuple[Matrix, ...], tuple[Matrix, Matrix], Matrix]:
    """Of PᵀA = [[L₁U₁, L₁U₂], [L₂U₁, A₂₂]]: L₁, U₁, L₂ and U₂; L₁⁻¹ and U₁⁻¹; A₂₂."""
    a11, a12, a21, a22 = blocks(select(matrix, order.tolist(), range(matrix.ncols())), rank)
    l1_inverse, u1_inverse = enclosed_inverses(a11)
    l1 = strictly_lower(a11 * u1_inverse) + identity(a11, rank)
    factors = l1, upper(l1_inverse * a11), a21 * u1_inverse, l1_inverse * a12
    return factors, (l1_inverse, u1_inverse), a22


def enclosed_inverses(a: Matrix) -> tuple[Matrix, Matrix]:
    """Enclose L⁻¹ and U⁻¹ of the unpivoted LU factorization of a.

    With F = L⁻¹ Ȧ U⁻¹ = L⁻¹L̇ + U̇U⁻¹ their derivatives are −tril₋₁(F) L⁻¹ and −U⁻¹ triu(F).
    """
    if isinstance(a, Dual):
        y, z = enclosed_inverses(a.value)
        moved = y * a.tangent * z
        return Dual(y, -(strictly_lower(moved) * y)), Dual(z, -(z * upper(moved)))
    size = a.nrows()
    y, z = _approximate_inverses(a)
    error = norm_bound(y * a * z - identity(a, size))
    if not error < 0.25:
        raise UnresolvedError("the approximate LU factors are too inaccurate to enclose")
    around_zero = arb(0, 4 * error)
    entry = acb(around_zero, around_zero) if isinstance(a, acb_mat) else around_zero
    spread = type(a)(size, size, [entry] * (size * size))
    return y + strictly_lower(spread) * y, z + z * upper(spread)


def _approximate_inverses(a: Matrix) -> tuple[Matrix, Matrix]:
    """Approximate L⁻¹ and U⁻¹ by halving: products do nearly all the work."""
    size = a.nrows()
    if size == 1:
        return identity(a, 1), type(a)(1, 1, [1 / a[0, 0].mid()]).mid()
    half = size // 2
    a11, a12, a21, a22 = blocks(a, half)
    y1, z1 = _approximate_inverses(a11)
    u12, l21 = (y1 * a12).mid(), (a21 * z1).mid()
    y2, z2 = _approximate_inverses((a22 - l21 * u12).mid())
    y = join(y1, zeros(a12, half, size - half), -(y2 * (l21 * y1)), y2)
    z = join(z1, -((z1 * u12) * z2), zeros(a21, size - half, half), z2)
    return y.mid(), z.mid()
