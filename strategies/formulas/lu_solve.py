"""X = A⁻¹B and X = A⁻ᴴB by the packed factors of A = P L U, with gradients of rank k.

With Y = U X = L⁻¹PᵀB, V = U⁻ᴴG and W = L⁻ᴴV for the cotangent G of X = A⁻¹B,

    B̄ = P W        Ū = −triu(V Xᴴ)        L̄ = −tril₋₁(W Yᴴ),

and with Z = PᵀX, T = LᴴZ = U⁻ᴴB, V = L⁻¹PᵀG and W = U⁻¹V for that of X = A⁻ᴴB

    B̄ = W          Ū = −triu(T Wᴴ)        L̄ = −tril₋₁(Z Vᴴ),

which is what dX = −A⁻¹(dA)X makes of dA = P(dL U + L dU). So there are a few solves with k right-hand
sides, O(n²k), and every entry of the gradient is written once. P, L and U, and any product of them,
would be n×n arrays and O(n³).
"""

import torch
from torch import Tensor

from strategies.factors import Triangular
from strategies.factors.pivots import order_of
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.lu import permute_rows
from strategies.formulas.triangles import packed_product


def _unpermute_rows(matrix: Tensor, order: Tensor) -> Tensor:
    """The inverse of `permute_rows`: row i of the matrix becomes row `order[i]`."""
    if order.ndim == 1 and matrix.ndim == 2:
        return torch.empty_like(matrix).index_copy_(0, order, matrix)
    index = order.unsqueeze(-1).expand(matrix.shape)
    return torch.empty_like(matrix).scatter_(-2, index, matrix)


def backward(
    lower: PseudoInverse,
    upper: PseudoInverse,
    LU: Tensor,
    inverse_order: Tensor,
    rhs: Tensor,
    X: Tensor,
    cotangent: Tensor,
    *,
    adjoint: bool,
    need_factors: bool,
) -> tuple[Tensor | None, Tensor]:
    """The gradients of the packed factors, if it is wanted, and of B from that of X.

    Row i of A is row `inverse_order[i]` of L U.
    """
    if adjoint:
        V = lower.apply(_unpermute_rows(cotangent, inverse_order))
        W = upper.apply(V)
        if not need_factors:
            return None, W
        Z, T = _unpermute_rows(X, inverse_order), upper.apply_adjoint(rhs)
        return packed_product(LU, (Z, -V.mH), (T, -W.mH)), W
    V = upper.apply_adjoint(cotangent)
    W = lower.apply_adjoint(V)
    rhs_gradient = permute_rows(W, inverse_order)
    if not need_factors:
        return None, rhs_gradient
    Y = lower.apply(_unpermute_rows(rhs, inverse_order))
    return packed_product(LU, (-W, Y.mH), (-V, X.mH)), rhs_gradient


def explicit_backward(
    LU: Tensor, X: Tensor, inverse_order: Tensor, cotangent: Tensor, *, adjoint: bool
) -> tuple[Tensor, Tensor]:
    """`backward` as differentiable functions of the factors, X and the cotangent."""
    lower, upper = _triangles(LU)
    order = order_of(inverse_order)
    if adjoint:
        Z = permute_rows(X, order)
        T = Z + LU.tril(-1).mH @ Z
        V = lower.apply(permute_rows(cotangent, order))
        W = upper.apply(V)
        return -((Z @ V.mH).tril(-1) + (T @ W.mH).triu()), W
    Y = LU.triu() @ X
    V = upper.apply_adjoint(cotangent)
    W = lower.apply_adjoint(V)
    gradient = -((W @ Y.mH).tril(-1) + (V @ X.mH).triu())
    return gradient, permute_rows(W, inverse_order)


def rhs_tangent(
    LU: Tensor,
    X: Tensor,
    inverse_order: Tensor,
    factors_tangent: Tensor | None,
    rhs_tangent: Tensor | None,
    *,
    adjoint: bool,
) -> Tensor:
    """The right-hand sides dB − dA X, or dB − dAᴴX, whose solution is the tangent of X; None is zero."""
    rhs = torch.zeros_like(X) if rhs_tangent is None else rhs_tangent
    if factors_tangent is None:
        return rhs
    L, dL, U, dU = LU.tril(-1), factors_tangent.tril(-1), LU.triu(), factors_tangent.triu()
    if adjoint:
        Z = permute_rows(X, order_of(inverse_order))
        return rhs - U.mH @ (dL.mH @ Z) - dU.mH @ (Z + L.mH @ Z)
    dUX = dU @ X
    return rhs - permute_rows(dL @ (U @ X) + dUX + L @ dUX, inverse_order)


def solution(LU: Tensor, inverse_order: Tensor, rhs: Tensor, *, adjoint: bool) -> Tensor:
    """A⁻¹ or A⁻ᴴ times right-hand sides, in differentiable calls."""
    lower, upper = _triangles(LU)
    if adjoint:
        return permute_rows(lower.apply_adjoint(upper.apply_adjoint(rhs)), inverse_order)
    return upper.apply(lower.apply(permute_rows(rhs, order_of(inverse_order))))


def _triangles(LU: Tensor) -> tuple[PseudoInverse, PseudoInverse]:
    return Triangular(LU, Structure.UNIT_LOWER), Triangular(LU, Structure.UPPER)
