"""det A and A⁻¹ as expressions that are smooth and accurate to every order, at singular matrices, too.

Let B be A with rows and columns scaled by powers of two. For the determinant, let B P = Q R at the point
where derivatives are wanted, with those k columns last without which the others are as independent as
they can be (Golub & Van Loan, "Matrix Computations", 4th ed. 2013, section 5.5.7). With Q and P constant,

    T = Qᴴ B P,    det B = det(Q Pᵀ) · det T,

and T is R there. Split alike,

    det T = det R₁₁ · det(T₁₁ R₁₁⁻¹) · det(T₂₂ − T₂₁ T₁₁⁻¹ T₁₂),

of which only the last factor, a k×k determinant, vanishes with A. That one is evaluated between singular
vectors and without a division (R. S. Bird, "A simple division-free algorithm for computing determinants",
Inf. Process. Lett. 111 (2011)), so that every derivative of a vanishing determinant is finite and right.

With k = 1 nothing is divided by a singular value that is small, but not negligible: in the derivative of
the gradient, det A (tr(A⁻¹F) A⁻¹ − A⁻¹F A⁻¹)ᴴ for F = dA, what is divided by it twice cancels.

The inverse is that of Uᴴ B V, where B = U S Vᴴ is a singular value decomposition at that point.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from strategies.factors.elimination import inv, lu_factor_ex, lu_solve, one_by_one, sign
from strategies.factors.nonsingular import Triangular
from strategies.factors.pseudo_inverse import Structure
from strategies.formulas.matrices import first_columns, identity_where
from strategies.formulas.powers_of_two import equilibrate, product, times_power_of_two

_MOST_NEGLIGIBLE = 8
"""With more negligible singular values a determinant and its derivatives up to this order are zero."""

_ROUNDOFF = 4
"""Times ε, what singular values that should be zero are at most beside the largest."""


def det_gradient(A: Tensor, corank: int, cotangent: Tensor) -> Tensor:
    """The gradient of det A, (..., n, n), smooth in A and its cotangent, (...).

    At most `corank` singular values are negligible.
    """
    n = A.shape[-1]
    near, powers = _scaled(A)
    B = times_power_of_two(A, -powers)
    # Of det A = 2^total · det B: the powers of its rows and columns are each counted n times.
    total = powers.sum((-2, -1)) // n
    if corank <= 1:
        gradient, exponent = _gradient_near_rank_one_less(B, near, cotangent)
    else:
        S = torch.linalg.svdvals(near)
        eps, largest = torch.finfo(S.dtype).eps, S[..., :1]
        vanishes = (largest * _ROUNDOFF * eps >= S).sum(-1) > _MOST_NEGLIGIBLE
        some, near_some = identity_where(vanishes, B), identity_where(vanishes, near)
        most = min(corank, _MOST_NEGLIGIBLE)
        gradient, exponent = _split_gradient(some, near_some, most, cotangent)
        gradient = gradient.masked_fill(vanishes[..., None, None], 0)
        is_one = S[..., -2] > eps**0.5 * S[..., 0]
        some, near_some = identity_where(~is_one, B), identity_where(~is_one, near)
        of_one, exponent_of_one = _gradient_near_rank_one_less(some, near_some, cotangent)
        gradient = torch.where(is_one[..., None, None], of_one, gradient)
        exponent = torch.where(is_one, exponent_of_one, exponent)
    return times_power_of_two(gradient, (total + exponent)[..., None, None] - powers)


def is_nearly_of_rank_one(inverse: Tensor) -> Tensor:
    """Whether the smallest singular value of A is alone, ten times below the next, bool (...).

    With s the singular values of A⁻¹, Σ s⁴ / (Σ s²)² is one if there is only one, and about 1 − 2 / r² with
    a second, r times below.

    Example:
        >>> is_nearly_of_rank_one(torch.diag(torch.tensor([1.0, 50.0])))
        tensor(True)
    """
    near = inverse / inverse.abs().amax((-2, -1), keepdim=True)
    squares = torch.linalg.matrix_norm(near).square()
    fourth_powers = torch.linalg.matrix_norm(near.mH @ near).square()
    return ~(fourth_powers < (1 - 2 / 10**2) * squares.square())


def _scaled(A: Tensor) -> tuple[Tensor, Tensor]:
    """B, constant and finite, and the powers of two by which the entries of A are divided."""
    matrix, rows, columns = equilibrate(A.detach())
    # Decompositions of NaN raise an error.
    finite = torch.where(matrix.isfinite(), matrix, 0)
    return finite, rows.unsqueeze(-1) + columns.unsqueeze(-2)


class _Split(NamedTuple):
    """Constants of the splitting."""

    order: Tensor  # P, as the order of columns
    back: Tensor  # its inverse
    Q: Tensor  # of B P = Q R, there
    R: Tensor  # with ones for zeros on the diagonal of R₁₁
    core: Triangular  # R₁₁⁻¹
    scale: Tensor  # det R₁₁ · det(Q Pᵀ), a mantissa
    exponent: Tensor  # of that

    @classmethod
    def of(cls, near: Tensor, order: Tensor, corank: int) -> _Split:
        regular = near.shape[-1] - corank
        Q, R = torch.linalg.qr(_columns(near, order))
        pivots = R.diagonal(dim1=-2, dim2=-1)[..., :regular]
        nonzero = torch.where(pivots == 0, 1, pivots)
        R11 = R[..., :regular, :regular] + torch.diag_embed(nonzero - pivots)
        mantissa, exponent = product(nonzero)
        back = order.argsort(-1)
        scale = sign(_columns(Q, back)) * mantissa
        return cls(order, back, Q, R, Triangular(R11, Structure.UPPER), scale, exponent)

    def coordinates(self, B: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The blocks T₁₁ R₁₁⁻¹, T₁₂, T₂₁ R₁₁⁻¹ and T₂₂."""
        T, regular = self.Q.mH @ _columns(B, self.order), self.core.factor.shape[-1]
        left = self.core.apply_adjoint(first_columns(T, regular).mH).mH
        right = T[..., regular:]
        above = left[..., :regular, :], right[..., :regular, :]
        return *above, left[..., regular:, :], right[..., regular:, :]

    def gradient(self, of_T: Tensor) -> Tensor:
        """That of B from that of T."""
        return _columns(self.Q @ of_T, self.back)


def _gradient_near_rank_one_less(
    B: Tensor, near: Tensor, cotangent: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient of det B, with k one: a matrix, and the exponent of a power of two.

    With y = T₁₁⁻¹ T₁₂, x = T₂₁ T₁₁⁻¹ and s = T₂₂ − x T₁₂ it is ḡ times the adjoint of

        adj T = det T₁₁ · ([−y; 1] [−x  1] + s [T₁₁⁻¹  0; 0  0]).
    """
    split = _Split.of(near, _dependent_last(_null_vector(near)), 1)
    near_identity, T12, z, T22 = split.coordinates(B)
    # Not by solve or slogdet, whose forward mode does not nest (PyTorch issue 198017).
    inverse = inv(near_identity)
    y, x = split.core.apply(inverse @ T12), z @ inverse
    det_T11 = split.scale * _determinant(near_identity)
    one = torch.ones_like(T22)
    outer = torch.cat([-y, one], dim=-2) @ torch.cat([-x, one], dim=-1)
    adjugate = outer + pad((T22 - x @ T12) * split.core.apply(inverse), (0, 1, 0, 1))
    factor = cotangent * det_T11.conj()
    return split.gradient(factor[..., None, None] * adjugate.mH), split.exponent


def _split_gradient(
    B: Tensor, near: Tensor, corank: int, cotangent: Tensor
) -> tuple[Tensor, Tensor]:
    """Likewise with k the corank."""
    regular = B.shape[-1] - corank
    null = torch.linalg.svd(near).Vh[..., regular:, :]
    split = _Split.of(near, _dependent_last(null), corank)
    U, _, VH = torch.linalg.svd(split.R[..., regular:, regular:])
    scale = split.scale * sign(U) * sign(VH)

    def det(B: Tensor) -> Tensor:
        near_identity, T12, z, T22 = split.coordinates(B)
        complement = U.mH @ (T22 - z @ inv(near_identity) @ T12) @ VH.mH
        return scale * _determinant(near_identity) * _division_free(complement)

    (gradient,) = torch.func.vjp(det, B)[1](cotangent)
    return gradient, split.exponent


@one_by_one
def _determinant(near_identity: Tensor) -> Tensor:
    return torch.linalg.lu_factor(near_identity).LU.diagonal(dim1=-2, dim2=-1).prod(-1)


def _columns(matrix: Tensor, order: Tensor) -> Tensor:
    return matrix.gather(-1, order.unsqueeze(-2).expand(matrix.shape))


def _null_vector(near: Tensor) -> Tensor:
    """About the last right singular vector, (..., 1, n), by inverse iteration."""
    n = near.shape[-1]
    LU, pivots = lu_factor_ex(near)[:2]
    diagonal = LU.diagonal(dim1=-2, dim2=-1)
    least = torch.finfo(LU.dtype).eps
    LU = LU + torch.diag_embed(torch.where(diagonal.abs() < least, least - diagonal, 0))
    # From a vector that is orthogonal to none in particular.
    start = torch.arange(1, n + 1, device=LU.device).cos().to(LU.dtype)
    x = start.unsqueeze(-1).expand(*LU.shape[:-1], 1)
    for _ in range(2):
        x = lu_solve(LU, pivots, lu_solve(LU, pivots, x, adjoint=True))
        # Of two zero pivots there are entries whose squares leave single precision.
        x = torch.nn.functional.normalize(x / x.abs().amax(-2, keepdim=True), dim=-2)
    return x.mH


def _dependent_last(null: Tensor) -> Tensor:
    """An order of columns, (..., n), from the last right singular vectors, (..., k, n).

    The last ones are those in which these vectors are largest, by elimination with column pivoting.
    """
    taken = torch.zeros_like(null[..., 0, :], dtype=torch.bool)
    for _ in range(null.shape[-2]):
        sizes = torch.linalg.vector_norm(null, dim=-2)
        largest = sizes.masked_fill(taken, -1).argmax(-1, keepdim=True)
        taken = taken.scatter(-1, largest, True)
        column = null.gather(-1, largest.unsqueeze(-2).expand(*null.shape[:-1], 1))
        unit = torch.nn.functional.normalize(column, dim=-2)
        null = null - unit @ (unit.mH @ null)
    return taken.int().argsort(dim=-1, stable=True)


def inverse(A: Tensor) -> Tensor:
    """A⁻¹, (..., n, n), of nonsingular matrices."""
    near, powers = _scaled(A)
    U, S, VH = torch.linalg.svd(near)
    S = S.to(A.dtype).unsqueeze(-2)
    T = U.mH @ times_power_of_two(A, -powers) @ VH.mH
    scaled = (VH.mH / S) @ inv(T / S) @ U.mH
    return times_power_of_two(scaled, -powers.mT)


def _division_free(matrix: Tensor) -> Tensor:
    n = matrix.shape[-1]
    result = matrix
    for _ in range(n - 1):
        diagonal = result.diagonal(dim1=-2, dim2=-1)
        # μ(X): the strict upper triangle, and minus the sums of the diagonal entries further down.
        below = diagonal.flip(-1).cumsum(-1).flip(-1) - diagonal
        result = (result.triu(1) - torch.diag_embed(below)) @ matrix
    return (-1) ** (n - 1) * result[..., 0, 0]
