"""A = Q R of full rank: square, tall, wide, and with all of the basis that reflectors make.

Let k = min(m, n) and A = [A₁ A₂], R = [R₁ R₂] with A₁ = Q R₁ of k columns, which have to be independent.
R₁ has a real diagonal. With X = QᴴdA₁R₁⁻¹ and Ω = tril₋₁(X) − tril₋₁(X)ᴴ + i Im diag(X)

    dR = QᴴdA − Ω R        dQ = Q Ω + (I − QQᴴ) dA₁ R₁⁻¹,

the last term only where m > n. Paired with Q̄ and R̄, with Z = QᴴQ̄ − R̄Rᴴ,

    Ā = (Q̄ − Q M) R₁⁻ᴴ,         M = triu(Z) + triu₁(Z)ᴴ with the real part of the diagonal  (m > n)
    Ā = Q (R̄ + [Y 0]),          Y = (tril₋₁(Z − Zᴴ) + i Im diag(Z)) R₁⁻ᴴ                    (m ≤ n).

For square and tall matrices see Walter & Lehmann, "Algorithmic differentiation of linear algebra functions
with application in optimum experimental design" (2010); for wide and complex ones Roberts & Roberts, "QR
and LQ decomposition matrix backpropagation algorithms" (arXiv 2009.10071, 2020). Written so, that of a real
A with m ≤ n does not divide by the last diagonal entry of R₁: to be orthogonal to the other columns
determines the last one of Q up to its sign.

**Second derivatives**, paired with D: let V = D₁R₁⁻¹ and S = QᴴV. If m > n, let T = triu₁(S + Sᴴ) with the
real diagonal of S. Then the gradients of Ā with respect to Q and R are −V M − Q̄ Tᴴ and triu(Tᴴ R̄ − Vᴴ Ā),
and those with respect to Q̄ and R̄ the tangents along D, V − Q T and T R. If m ≤ n, the gradient is paired
with D as Q Ω with Q̄ and QᴴD − Ω R with R̄, with X = S in Ω. These are the gradients with respect to Q̄ and
R̄, and those with respect to Q and R are D (R̄ + [Y 0])ᴴ − Q̄ Ω and triu(Ω R̄ − [SᴴY 0]).

**All m columns** of the orthogonal factor of a tall A are a function of A, too: a product of reflectors is
I − V T Vᴴ (Schreiber & Van Loan 1989), with V unit lower trapezoidal and T upper triangular, which
Papanicolopulos (arXiv 2409.13374, 2024) differentiates. But its first n columns tell the others:
Q₁ − E₁ = −V T V₁ᴴ, where E₁ are the first columns of the identity, is an LU factorization, so that
V T = (E₁ − Q₁) V₁⁻ᴴ and, with Q₁ = [Q₁₁; Q₂₁] and V₂V₁⁻¹ = Q₂₁ (Q₁₁ − I)⁻¹,

    Q₂ = E₂ + (Q₁ − E₁) K,        (Q₁₁ − I)ᴴ K = Q₂₁ᴴ.

Q₁₁ − I is singular where a column needs no reflection, since it is zero below the diagonal. R jumps there.
"""

import torch
from torch import Tensor

from strategies.factors.elimination import solve
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas.matrices import first_columns, first_rows


def divisor(Q: Tensor, R: Tensor) -> Tensor:
    """The triangle that derivatives divide by: R₁, its last diagonal entry one where that has no effect."""
    R1 = first_columns(R, Q.shape[-1])
    if independent_columns(Q) == Q.shape[-1]:
        return R1
    R1 = R1.clone()
    R1[..., -1:, -1:].fill_(1)
    return R1


def independent_columns(Q: Tensor) -> int:
    """How many columns of A, from the first on, have to be independent."""
    m, k = Q.shape[-2:]
    return k if m > k or Q.is_complex() else max(k - 1, 0)


def backward(inverse: PseudoInverse, Q: Tensor, R: Tensor, Q_bar: Tensor, R_bar: Tensor) -> Tensor:
    """The gradient of A from the inverse of `divisor`; of R̄ only the upper triangle is read."""
    m, k = Q.shape[-2:]
    R_bar = R_bar.triu()
    Z = Q.mH @ Q_bar - R_bar @ R.mH
    if m > k:
        return inverse.apply((Q_bar - Q @ _mirrored(Z)).mH).mH
    lower = (Z - Z.mH).tril(-1)
    if Z.is_complex():
        lower = lower + _imaginary_diagonal(Z)
    return Q @ _plus_leading(R_bar, inverse.apply(lower.mH).mH)


def _mirrored(Z: Tensor) -> Tensor:
    """The Hermitian matrix of the upper triangle, with the real part of the diagonal."""
    return _with_real_diagonal(Z.triu() + Z.triu(1).mH)


def _plus_leading(matrix: Tensor, leading: Tensor) -> Tensor:
    """The matrix plus another that has its first columns alone."""
    others = matrix.shape[-1] - leading.shape[-1]
    return matrix + (torch.nn.functional.pad(leading, (0, others)) if others else leading)


def _rotation(
    inverse: PseudoInverse, Q: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """V, S and Ω."""
    V = inverse.apply_adjoint(first_columns(direction, Q.shape[-1]).mH).mH
    S = Q.mH @ V
    lower = S.tril(-1)
    skew = lower - lower.mH
    return V, S, skew + _imaginary_diagonal(S) if S.is_complex() else skew


def _with_real_diagonal(matrix: Tensor) -> Tensor:
    if not matrix.is_complex():
        return matrix
    return matrix - _imaginary_diagonal(matrix)


def _imaginary_diagonal(matrix: Tensor) -> Tensor:
    imaginary = matrix.diagonal(dim1=-2, dim2=-1).imag
    return torch.diag_embed(torch.complex(torch.zeros_like(imaginary), imaginary))


def second_backward(
    inverse: PseudoInverse,
    Q: Tensor,
    R: Tensor,
    gradient: Tensor,
    Q_bar: Tensor,
    R_bar: Tensor,
    direction: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of Ā, paired with a direction, with respect to Q, R, Q̄ and R̄."""
    m, k = Q.shape[-2:]
    R_bar = R_bar.triu()
    V, S, skew = _rotation(inverse, Q, direction)
    if m > k:
        T = _with_real_diagonal(S.triu() + S.tril(-1).mH)
        M = _mirrored(Q.mH @ Q_bar - R_bar @ R.mH)
        of_R = (T.mH @ R_bar - V.mH @ gradient).triu()
        return -V @ M - Q_bar @ T.mH, of_R, V - Q @ T, T @ R
    turned = Q.mH @ gradient
    Y = first_columns(turned - R_bar, independent_columns(Q)).tril()
    of_Q = direction @ turned.mH - Q_bar @ skew
    of_R = _plus_leading(skew @ R_bar, -S.mH @ Y).triu()
    return of_Q, of_R, Q @ skew, (Q.mH @ direction - skew @ R).triu()


def jvp(inverse: PseudoInverse, Q: Tensor, R: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of Q, (..., m, k), and R, (..., k, n), from that of A."""
    m, k = Q.shape[-2:]
    V, S, skew = _rotation(inverse, Q, tangent)
    of_Q = Q @ skew + V - Q @ S if m > k else Q @ skew
    return of_Q, (Q.mH @ tangent - skew @ R).triu()


def _coupling(Q1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Q₁ − E₁, its leading block, and K."""
    m, n = Q1.shape[-2:]
    D = Q1 - torch.eye(m, n, dtype=Q1.dtype, device=Q1.device)
    leading = first_rows(D, n)
    return D, leading, solve(leading.mH, Q1[..., n:, :].mH)


def complement_backward(Q1: Tensor, cotangent: Tensor) -> Tensor:
    """What the cotangent of Q₂, (..., m, m − n), adds to that of Q₁, (..., m, n)."""
    D, leading, K = _coupling(Q1)
    S = solve(leading, D.mH @ cotangent)
    return cotangent @ K.mH + torch.cat([-K @ S.mH, S.mH], dim=-2)


def complement_jvp(Q1: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of Q₂ from that of Q₁."""
    n = Q1.shape[-1]
    D, leading, K = _coupling(Q1)
    change = tangent[..., n:, :].mH - first_rows(tangent, n).mH @ K
    return tangent @ K + D @ solve(leading.mH, change)
