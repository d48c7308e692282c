"""The derivatives of the inverse and of the adjugate, which hold the second ones of log det and det.

With X = A⁻ᴴ, or X = adj(A)ᴴ and τ = tr(adj(A) C), that of X along C is

    −X Cᴴ X,    (conj(τ) X − X Cᴴ X) / conj(det A),

by products. Where the smallest singular value is far below all others, X is nearly of rank one, the terms
of the latter are nearly alike, and errors of X that neither result is sensitive to are multiplied by C;
where A is singular, there is nothing to divide. Then, with A = L diag(s) Rᴴ as in
`strategies.factors.diagonalized` and P = L⁻¹ C R⁻ᴴ, they are

    −L⁻ᴴ (P / s sᵀ)ᴴ R⁻¹,    conj(det L det Rᴴ) L⁻ᴴ Zᴴ R⁻¹,

    Zᵢⱼ = −Pᵢⱼ qᵢⱼ for i ≠ j,    Zᵢᵢ = Σₖ Pₖₖ qᵢₖ over k ≠ i,

where qᵢⱼ is the product of all of s but the i-th and the j-th: no division, at any rank.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.linalg import matrix_norm

from strategies.factors.diagonalized import Diagonalized, diagonalize
from strategies.formulas.powers_of_two import product, split, times_power_of_two
from strategies.formulas.smooth_det import is_nearly_of_rank_one

_MOST_LOST = 32
"""Of the norm of a result beside the terms or factors that it is made of."""

_MOST_GROWTH = 2**10
"""Of entries of a factor, by which products of them lose digits that the adjugate itself does not."""


def derivative_of_inverse(A: Tensor, X: Tensor, direction: Tensor) -> Tensor:
    """The derivative of A⁻ᴴ, `X`, along a direction, all (..., n, n).

    Example:
        >>> A, C = torch.tensor([[2.0]]), torch.tensor([[1.0]])
        >>> derivative_of_inverse(A, torch.tensor([[0.5]]), C)
        tensor([[-0.2500]])
    """
    largest = X.abs().amax((-2, -1), keepdim=True)
    near = X / largest
    between = near @ (direction.mH @ near)
    # If X is of rank one, the norm of the product is that of C over n, about, for a generic direction.
    most = _MOST_LOST * A.shape[-1] / 2
    is_right = matrix_norm(near).square() * matrix_norm(direction) <= most * matrix_norm(between)
    result = -between * largest * largest
    return _corrected(_inverse_by_values, is_right, result, A, direction)


def derivative_of_adjugate(A: Tensor, det: Tensor, X: Tensor, direction: Tensor) -> Tensor:
    """The derivative of adj(A)ᴴ, `X`, along a direction, all (..., n, n); det A is (...).

    NaN for a matrix with entries that are not finite.

    Example:
        >>> A, C = torch.diag(torch.tensor([2.0, 3.0])), torch.diag(torch.tensor([1.0, 0.0]))
        >>> derivative_of_adjugate(A, torch.tensor(6.0), torch.diag(torch.tensor([3.0, 2.0])), C)
        tensor([[0., 0.],
                [0., 1.]])
    """
    largest = X.abs().amax((-2, -1), keepdim=True)
    near = X / largest
    trace = (near.conj() * direction).sum((-2, -1), keepdim=True)
    outer = trace.conj() * near
    difference = outer - near @ (direction.mH @ near)
    scaled = det / largest[..., 0, 0]
    result = difference * (largest / scaled.conj()[..., None, None])
    # tr(adj(A) A) is n det A, unless both are roundoff.
    total = A.shape[-1] * scaled
    is_roundoff = _MOST_LOST * ((near.conj() * A).sum((-2, -1)) - total).abs() > total.abs()
    is_right = matrix_norm(outer) <= _MOST_LOST * matrix_norm(difference)
    is_right &= ~(is_nearly_of_rank_one(near, _MOST_LOST * 2**0.5) | is_roundoff)
    return _corrected(_adjugate_by_values, is_right, result, A, direction)


def _corrected(
    by_values: Callable[[Tensor, Tensor], Tensor],
    is_right: Tensor,
    result: Tensor,
    A: Tensor,
    direction: Tensor,
) -> Tensor:
    """The result, with that by s where it is not right, or not finite."""
    is_right = is_right & result.isfinite().all(-1).all(-1)
    if not bool(is_right.all()):
        result[~is_right] = by_values(A[~is_right], direction[~is_right])
    return result


def _inverse_by_values(A: Tensor, direction: Tensor) -> Tensor:
    factors, P, powers = _decomposed(A, direction)
    S = factors.values
    middle = P / (S.unsqueeze(-1) * S.unsqueeze(-2))
    return times_power_of_two(-factors.left @ middle.mH @ factors.right, -powers)


def _adjugate_by_values(A: Tensor, direction: Tensor) -> Tensor:
    factors, P, powers = _decomposed(A, direction)
    products, exponents = _products_of_all_but_two(factors.values)
    # The diagonal of the products is zero.
    Z = torch.diag_embed((products @ P.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)).squeeze(-1))
    Z = (Z - P * products) * factors.phase[..., None, None]
    total = factors.rows.sum(-1) + factors.columns.sum(-1) + exponents
    result = factors.left @ Z.mH @ factors.right
    return times_power_of_two(result, total[..., None, None] - powers)


def _decomposed(A: Tensor, direction: Tensor) -> tuple[Diagonalized, Tensor, Tensor]:
    """L diag(s) Rᴴ and P, of A and C with rows and columns scaled, and the powers of two of the entries."""
    factors = diagonalize(A, _MOST_GROWTH)
    powers = factors.rows.unsqueeze(-1) + factors.columns.unsqueeze(-2)
    P = factors.left.mH @ times_power_of_two(direction, -powers) @ factors.right.mH
    return factors, P, powers


def _products_of_all_but_two(S: Tensor) -> tuple[Tensor, Tensor]:
    """The products q, (..., n, n), zero on the diagonal, and the exponent of a power of two for all."""
    is_zero = S == 0
    nonzero = torch.where(is_zero, 1, S)
    total, exponent = product(nonzero)
    mantissas, exponents = split(nonzero)
    products = total[..., None, None] / (mantissas.unsqueeze(-1) * mantissas.unsqueeze(-2))
    exponents = exponent[..., None, None] - (exponents.unsqueeze(-1) + exponents.unsqueeze(-2))
    left_out = is_zero.int().unsqueeze(-1) + is_zero.int().unsqueeze(-2)
    vanishes = left_out < is_zero.sum(-1)[..., None, None]
    vanishes |= torch.eye(S.shape[-1], dtype=torch.bool, device=S.device)
    most = exponents.masked_fill(vanishes, -(2**20)).amax((-2, -1))
    products = times_power_of_two(products, exponents - most[..., None, None])
    return products.masked_fill(vanishes, 0), most
