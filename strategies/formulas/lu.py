"""PᵀA = L U in packed form: square, tall, wide and rank-deficient.

L is m×k unit lower trapezoidal, U is k×n upper trapezoidal, k = min(m, n). Split L = [L₁; L₂] and
U = [U₁ U₂] with L₁, U₁ k×k. The blocks A₁₁ = L₁U₁, A₂₁ = L₂U₁, A₁₂ = L₁U₂ of PᵀA determine the
factors. For square A see Walter & Lehmann, "Algorithmic differentiation of linear algebra functions
with application in optimum experimental design" (2010); the trapezoidal form is

    Ā₂₁ = L̄₂ U₁⁻ᴴ                        Ā₁₂ = L₁⁻ᴴ Ū₂
    L̄₁ ← L̄₁ − tril₋₁(Ā₁₂ U₂ᴴ)            Ū₁ ← Ū₁ − triu(L₂ᴴ Ā₂₁)
    Ā₁₁ = L₁⁻ᴴ [tril₋₁(L₁ᴴ L̄₁) + triu(Ū₁ U₁ᴴ)] U₁⁻ᴴ.

**Rank r < k.** In canonical form the trailing block of the packed factors, rows and columns from r
on, is zero: A₂₂ = L₂U₂ follows from the rest and gets no gradient. Put 1 on the trailing diagonal of
U: the factors are then those of a matrix of full rank that differs from PᵀA only in that block, the
same functions of A₁₁, A₂₁, A₁₂, and the formula above holds for them as it stands, given cotangents
that are zero in the trailing block. So one code path serves batches of mixed rank.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import PseudoInverse, Structure

__all__ = [
    "Factor",
    "backward",
    "extend",
    "jvp",
    "leading_block",
    "mask_trailing",
    "permute_rows",
]

Factor = Callable[[Tensor, Structure], PseudoInverse]


def permute_rows(matrix: Tensor, order: Tensor) -> Tensor:
    """Row i of the result is row `order[i]` of the matrix: an index gather, never a product."""
    if order.ndim == 1 and matrix.ndim == 2:
        return matrix.index_select(0, order)
    return matrix.gather(-2, order.unsqueeze(-1).expand(matrix.shape))


def _beyond(rank: Tensor, size: int) -> Tensor:
    """Whether each index of a dimension of that size is at or past the rank: (..., size)."""
    return torch.arange(size, device=rank.device) >= rank.unsqueeze(-1)


def mask_trailing(packed: Tensor, rank: Tensor) -> Tensor:
    """The packed matrix with rows and columns from the rank on set to zero."""
    m, n = packed.shape[-2:]
    trailing = _beyond(rank, m).unsqueeze(-1) & _beyond(rank, n).unsqueeze(-2)
    return packed.masked_fill(trailing, 0)


def extend(LU: Tensor, rank: Tensor) -> Tensor:
    """Packed canonical factors with the trailing diagonal of U set to one."""
    k = min(LU.shape[-2:])
    ones = _beyond(rank, k).to(LU.dtype)
    padded = torch.nn.functional.pad(
        torch.diag_embed(ones), (0, LU.shape[-1] - k, 0, LU.shape[-2] - k)
    )
    return mask_trailing(LU, rank) + padded


def leading_block(matrix: Tensor, k: int) -> Tensor:
    """The first k rows and columns."""
    return matrix.narrow(-2, 0, k).narrow(-1, 0, k)


def backward(factor: Factor, LU: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of PᵀA, rows in pivoted order, from that of the packed factors.

    Args:
        factor: makes a `PseudoInverse` of a k×k triangular matrix; only that triangle is read.
        LU: the packed factors, (..., m, n), at full rank (see `extend`).
        cotangent: of the packed factors, (..., m, n).

    Returns:
        (..., m, n).
    """
    m, n = LU.shape[-2:]
    k = min(m, n)
    square = leading_block(LU, k)
    lower, upper = factor(square, Structure.UNIT_LOWER), factor(square, Structure.UPPER)
    L, U = square.tril(-1), square.triu()
    L_bar, U_bar = leading_block(cotangent, k).tril(-1), leading_block(cotangent, k).triu()
    if m > k:
        below = upper.apply(cotangent[..., k:, :].mH).mH
        U_bar = U_bar - (LU[..., k:, :].mH @ below).triu()
    if n > k:
        right = lower.apply_adjoint(cotangent[..., k:])
        L_bar = L_bar - (right @ LU[..., k:].mH).tril(-1)
    # L has its unit diagonal left out: Lᴴ L̄ = L̄ + (L − I)ᴴ L̄.
    middle = L_bar + (L.mH @ L_bar).tril(-1) + (U_bar @ U.mH).triu()
    leading = upper.apply(lower.apply_adjoint(middle).mH).mH
    if m > k:
        return torch.cat([leading, below], dim=-2)
    if n > k:
        return torch.cat([leading, right], dim=-1)
    return leading


def jvp(factor: Factor, LU: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of the packed factors from that of PᵀA, rows in pivoted order; all (..., m, n).

    With F = L₁⁻¹ dA₁₁ U₁⁻¹: dL₁ = L₁ tril₋₁(F), dU₁ = triu(F) U₁, dL₂ = (dA₂₁ − L₂ dU₁) U₁⁻¹ and
    dU₂ = L₁⁻¹ (dA₁₂ − dL₁ U₂).
    """
    m, n = LU.shape[-2:]
    k = min(m, n)
    square = leading_block(LU, k)
    lower, upper = factor(square, Structure.UNIT_LOWER), factor(square, Structure.UPPER)
    F = upper.apply_adjoint(lower.apply(leading_block(tangent, k)).mH).mH
    dL = F.tril(-1) + square.tril(-1) @ F.tril(-1)
    dU = F.triu() @ square.triu()
    leading = dL + dU
    if m > k:
        below = tangent[..., k:, :] - LU[..., k:, :] @ dU
        return torch.cat([leading, upper.apply_adjoint(below.mH).mH], dim=-2)
    if n > k:
        right = tangent[..., k:] - dL @ LU[..., k:]
        return torch.cat([leading, lower.apply(right)], dim=-1)
    return leading
