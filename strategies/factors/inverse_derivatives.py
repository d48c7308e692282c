"""The derivatives of the inverse and of the adjugate, which hold the second ones of log det and det.

With A = L diag(s) Rᴴ, P = L⁻¹ C R⁻ᴴ, and qᵢⱼ the product of all of s but the i-th and the j-th, those of
A⁻ᴴ and of adj(A)ᴴ along C are

    −L⁻ᴴ (P / s sᵀ)ᴴ R⁻¹,    conj(det L det Rᴴ) L⁻ᴴ Zᴴ R⁻¹,

    Zᵢⱼ = −Pᵢⱼ qᵢⱼ for i ≠ j,    Zᵢᵢ = Σₖ Pₖₖ qᵢₖ over k ≠ i.

Only L and R, which are well-conditioned, have been applied to what is divided by s. In −X Cᴴ X, with
X = A⁻ᴴ, errors of X would be multiplied by C, to which the result of a nearly singular A is not sensitive.

L and diag(s) Rᴴ are the packed factors if no entry of R⁻¹ is large and qᵢⱼ = det A / (sᵢ sⱼ) is in range;
else factors of the scaled matrix, or singular vectors (`strategies.factors.diagonalized`), and no product
is a quotient.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from strategies.factors.diagonalized import Diagonalized, diagonalize
from strategies.formulas.powers_of_two import product, split, times_power_of_two
from strategies.kernels.cpu import calls

_MOST_GROWTH = 2**10
"""Of entries of a factor, by which products of them lose digits that the adjugate itself does not.

Known to `csrc/ops/inverse_derivatives.cpp`, too."""


def derivative_of_inverse(
    A: Tensor, LU: Tensor, pivots: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor]:
    """The derivative of A⁻ᴴ along C, all (..., n, n), and tr(A⁻¹C), (...).

    From the factors as kernels keep them: LU by columns, the transpose of the packed factors.

    NaN for a matrix with entries that are not finite.

    Example:
        >>> A, C = torch.tensor([[2.0]]), torch.tensor([[1.0]])
        >>> derivative_of_inverse(A, A, torch.tensor([1], dtype=torch.int32), C)
        (tensor([[-0.2500]]), tensor(0.5000))
    """
    found = calls.derivative_of_inverse(LU, pivots, direction)
    return _corrected(_inverse_by_values, found, A, direction)


def derivative_of_adjugate(
    A: Tensor, LU: Tensor, pivots: Tensor, det: Tensor, exponent: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor]:
    """The derivative of adj(A)ᴴ along C, all (..., n, n), and tr(adj(A) C).

    From the same factors, and a number times 2^exponent, which is det A, (...) and int64 (...).

    NaN for a matrix with entries that are not finite.

    Example:
        >>> A, C = torch.diag(torch.tensor([2.0, 3.0])), torch.diag(torch.tensor([1.0, 0.0]))
        >>> pivots = torch.tensor([1, 2], dtype=torch.int32)
        >>> derivative_of_adjugate(A, A, pivots, torch.tensor(6.0), torch.tensor(0), C)
        (tensor([[0., 0.],
                [0., 1.]]), tensor(3.))
    """
    result, trace, is_right = calls.derivative_of_adjugate(LU, pivots, direction, det)
    if bool(exponent.any()):
        result = times_power_of_two(result, exponent[..., None, None])
        trace = times_power_of_two(trace, exponent)
    return _corrected(_adjugate_by_values, (result, trace, is_right), A, direction)


def _corrected(
    by_values: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    found: tuple[Tensor, Tensor, Tensor],
    A: Tensor,
    direction: Tensor,
) -> tuple[Tensor, Tensor]:
    """Results, with those put in that are not right."""
    result, trace, is_right = found
    if not bool(is_right.all()):
        hard = ~is_right
        result[hard], trace[hard] = by_values(A[hard], direction[hard])
    return result, trace


def _inverse_by_values(A: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    factors, P, powers = _decomposed(A, direction)
    S = factors.values
    middle = P / (S.unsqueeze(-1) * S.unsqueeze(-2))
    result = times_power_of_two(-factors.left @ middle.mH @ factors.right, -powers)
    return result, _trace(factors.inverse_adjoint(torch.ones_like(factors.phase)), direction)


def _adjugate_by_values(A: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    factors, P, powers = _decomposed(A, direction)
    products, exponents = _products_of_all_but_two(factors.values)
    # The diagonal of the products is zero.
    Z = torch.diag_embed((products @ P.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)).squeeze(-1))
    Z = (Z - P * products) * factors.phase[..., None, None]
    total = factors.rows.sum(-1) + factors.columns.sum(-1) + exponents
    result = factors.left @ Z.mH @ factors.right
    result = times_power_of_two(result, total[..., None, None] - powers)
    return result, _trace(factors.adjugate_adjoint(torch.ones_like(factors.phase)), direction)


def _trace(adjoint: Tensor, direction: Tensor) -> Tensor:
    return (adjoint.conj() * direction).sum((-2, -1))


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
