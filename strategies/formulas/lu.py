"""PᵀA = L U in packed form: square, tall, wide and rank-deficient.

L is m×k unit lower trapezoidal, U is k×n upper trapezoidal, k = min(m, n). Split L = [L₁; L₂] and
U = [U₁ U₂] with L₁, U₁ k×k. The blocks A₁₁ = L₁U₁, A₂₁ = L₂U₁, A₁₂ = L₁U₂ of PᵀA determine the
factors. For square A see Walter & Lehmann, "Algorithmic differentiation of linear algebra functions
with application in optimum experimental design" (2010); the trapezoidal form is

    Ā₂₁ = L̄₂ U₁⁻ᴴ                        Ā₁₂ = L₁⁻ᴴ Ū₂
    Ā₁₁ = L₁⁻ᴴ [Ū₁ + K U₁⁻ᴴ],   K = tril₋₁(L₁ᴴ L̄₁ − Ū Uᴴ) − triu(L₂ᴴ L̄₂).

For a square A, that is L₁⁻ᴴ [tril₋₁(L₁ᴴ L̄₁) + triu(Ū₁ U₁ᴴ)] U₁⁻ᴴ, which multiplies Ū₁ by U₁ᴴ and by its
inverse. U₁ᴴ is lower triangular, so that triu(Ū₁ U₁ᴴ) U₁⁻ᴴ = Ū₁ − tril₋₁(Ū₁ U₁ᴴ) U₁⁻ᴴ. Likewise, with
E = L₁⁻¹ [dA₁₁ dA₁₂] and F = L₁⁻¹ dA₁₁ U₁⁻¹, tangents are

    dL₁ = L₁ tril₋₁(F)        dU = triu(E − tril₋₁(F) U)        dL₂ = dA₂₁ U₁⁻¹ − L₂ triu(F).

**Rank r < k.** In canonical form the trailing block of the packed factors, rows and columns from r
on, is zero: A₂₂ = L₂U₂ follows from the rest and gets no gradient. Put 1 on the trailing diagonal of
U: the factors are then those of a matrix of full rank that differs from PᵀA only in that block, the
same functions of A₁₁, A₂₁, A₁₂, and the formula above holds for them as it stands, given cotangents
that are zero in the trailing block. So one code path serves batches of mixed rank.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from strategies.factors.nonsingular import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.matrices import first_columns, first_rows, leading_block
from strategies.formulas.quadratic import QuadraticEquation
from strategies.formulas.values import with_values

Factor = Callable[[Tensor, Structure], PseudoInverse]


def permute_rows(matrix: Tensor, order: Tensor) -> Tensor:
    """Row i of the result is row `order[i]` of the matrix: an index gather, never a product."""
    if order.ndim == 1 and matrix.ndim == 2:
        return matrix.index_select(0, order)
    return matrix.gather(-2, order.unsqueeze(-1).expand(matrix.shape))


def packed(L: Tensor, U: Tensor) -> Tensor:
    """The strict lower triangle of one and the upper triangle of the other in one matrix, (..., m, n)."""
    wider, higher = U.shape[-1] - L.shape[-1], L.shape[-2] - U.shape[-2]
    return pad(L.tril(-1), (0, wider)) + pad(U.triu(), (0, 0, 0, higher))


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """The strict lower triangle, (..., m, k), and the upper one, (..., k, n)."""
    k = min(LU.shape[-2:])
    return first_columns(LU, k).tril(-1), first_rows(LU, k).triu()


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
    padded = pad(torch.diag_embed(ones), (0, LU.shape[-1] - k, 0, LU.shape[-2] - k))
    masked = mask_trailing(LU, rank)
    return with_values(masked, masked.detach() + padded)


def backward(factor: Factor, LU: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of PᵀA, rows in pivoted order, from that of packed factors at full rank (`extend`)."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    square, of_square = leading_block(LU, k), leading_block(cotangent, k)
    lower, upper = factor(square, Structure.UNIT_LOWER), factor(square, Structure.UPPER)
    L_bar = of_square.tril(-1)
    # L has its unit diagonal left out: Lᴴ L̄ = L̄ + (L − I)ᴴ L̄.
    inner = L_bar + square.tril(-1).mH @ L_bar - of_square.triu() @ square.triu().mH
    if n > k:
        inner = inner - cotangent[..., k:] @ LU[..., k:].mH
    inner = inner.tril(-1)
    if m > k:
        inner = inner - (LU[..., k:, :].mH @ cotangent[..., k:, :]).triu()
    leading = upper.apply(inner.mH).mH
    above = lower.apply_adjoint(first_rows(cotangent, k).triu() + pad(leading, (0, n - k)))
    if m == k:
        return above
    return torch.cat([above, upper.apply(cotangent[..., k:, :].mH).mH], dim=-2)


def jvp(factor: Factor, LU: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of the packed factors from that of PᵀA, rows in pivoted order; all (..., m, n)."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    square = leading_block(LU, k)
    lower, upper = factor(square, Structure.UNIT_LOWER), factor(square, Structure.UPPER)
    E = lower.apply(first_rows(tangent, k))
    F = upper.apply_adjoint(first_columns(E, k).mH).mH
    dL = F.tril(-1)
    leading = dL + square.tril(-1) @ dL + (first_columns(E, k) - dL @ square.triu()).triu()
    if n > k:
        return torch.cat([leading, E[..., k:] - dL @ LU[..., k:]], dim=-1)
    if m > k:
        below = upper.apply_adjoint(tangent[..., k:, :].mH).mH
        return torch.cat([leading, below - LU[..., k:, :] @ F.triu()], dim=-2)
    return leading


class Equation(QuadraticEquation):
    """L U = PᵀA of packed factors at full rank, rows in pivoted order."""

    def push(self, LU: Tensor, tangent: Tensor) -> Tensor:
        return jvp(Triangular, LU, tangent)

    def pull(self, LU: Tensor, cotangent: Tensor) -> Tensor:
        return backward(Triangular, LU, cotangent)

    def second(self, tangent: Tensor, other: Tensor) -> Tensor:
        (dL, dU), (other_dL, other_dU) = unpacked(tangent), unpacked(other)
        return dL @ other_dU + other_dL @ dU

    def second_adjoint(self, tangent: Tensor, gradient: Tensor) -> Tensor:
        return packed(*second_adjoint(*unpacked(tangent), gradient))


def second_adjoint(dL: Tensor, dU: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """`Equation.second_adjoint`, of L and of U, of which only their own triangles count."""
    return gradient @ dU.mH, dL.mH @ gradient
