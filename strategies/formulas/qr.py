"""A = Q R of full rank: square, tall, wide, and with all of the basis that reflectors make.

Let k = min(m, n) and A = [A₁ A₂], R = [R₁ R₂] with A₁ = Q R₁ of k columns, which have to be independent.
R₁ has a real diagonal. With dX = QᴴdA₁R₁⁻¹ and Ω = tril₋₁(dX) − tril₋₁(dX)ᴴ + i Im diag(dX)

    dR = QᴴdA − Ω R        dQ = Q Ω + (I − QQᴴ) dA₁ R₁⁻¹,

the last term only where m > n. Paired with Q̄ and R̄, with W = QᴴQ̄ + R₂R̄₂ᴴ and
N = triu(R̄₁R₁ᴴ − W), M = N + triu₁(N)ᴴ with the real part of the diagonal,

    Ā = (Q̄ + Q M) R₁⁻ᴴ  (m ≥ n)        [Ā₁ Ā₂] = Q [(W + M) R₁⁻ᴴ   R̄₂]  (m ≤ n).

For square and tall matrices see Walter & Lehmann, "Algorithmic differentiation of linear algebra functions
with application in optimum experimental design" (2010); for wide and complex ones Roberts & Roberts, "QR
and LQ decomposition matrix backpropagation algorithms" (arXiv 2009.10071, 2020).

**Second derivatives** of square and tall A: paired with D, where V = D R⁻¹, S = QᴴV and T = triu₁(S + Sᴴ)
with the real diagonal of S, the gradients of Ā with respect to Q and R are V M − Q̄ Tᴴ and
triu(Tᴴ R̄ − Vᴴ Ā), and those with respect to Q̄ and R̄ the tangents along D, V − Q T and T R. Of wide A,
Ā₁ is that of square A₁ with Q̄ + Q R₂R̄₂ᴴ for Q̄, and Ā₂ = Q R̄₂: to the gradient with respect to Q are added
(V − Q T) R̄₂R₂ᴴ + D₂R̄₂ᴴ, and those with respect to R₂ and R̄₂ are (S − T) R̄₂ and (S − T)ᴴR₂ + QᴴD₂.

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

from strategies.factors import Triangular
from strategies.factors.elimination import solve
from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas.matrices import first_columns, first_rows

_BLOCK = 128


def backward(inverse: PseudoInverse, Q: Tensor, R: Tensor, Q_bar: Tensor, R_bar: Tensor) -> Tensor:
    """The gradient of A from the inverse of R₁; of R̄ only the upper triangle is read."""
    m, k = Q.shape[-2:]
    W = Q.mH @ Q_bar
    if m > k:
        _add_middle(W, R, R_bar, is_tall=True)
        return _over(_plus_product(Q_bar, Q, W), inverse)
    R2, R2_bar = R[..., k:], R_bar[..., k:]
    if R2.shape[-1]:
        W += R2 @ R2_bar.mH
    _add_middle(W, R[..., :k], R_bar[..., :k], is_tall=False)
    leading = _over(W, inverse)
    if not R2.shape[-1]:
        return Q @ leading
    if Q.ndim > 2:
        return Q @ torch.cat([leading, R2_bar], dim=-1)
    result = Q.new_empty(R.shape)
    torch.mm(Q, leading, out=result[:, :k])
    torch.mm(Q, R2_bar, out=result[:, k:])
    return result


def _add_middle(W: Tensor, R: Tensor, R_bar: Tensor, *, is_tall: bool) -> None:
    """Overwrite W by M if A is tall, else by W + M, of which the upper triangle is that of R̄Rᴴ.

    By blocks of columns, so that of R̄Rᴴ a third of the full product is computed.
    """
    k = W.shape[-1]
    for start in range(0, k, _BLOCK):
        stop = min(start + _BLOCK, k)
        right = R[..., start:stop, start:].mH
        block = W[..., start:stop, start:stop]
        N = (R_bar[..., start:stop, start:].triu() @ right).sub_(block)
        strict = N.triu(1)
        M = strict + strict.mH
        M.diagonal(dim1=-2, dim2=-1).copy_(N.diagonal(dim1=-2, dim2=-1).real)
        block.copy_(M) if is_tall else block.add_(M)
        if start:
            above, left = W[..., :start, start:stop], W[..., start:stop, :start]
            product = R_bar[..., :start, start:] @ right
            N = product - above
            above.copy_(N if is_tall else product)
            left.copy_(N.mH) if is_tall else left.add_(N.mH)


def _plus_product(first: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """`first + left @ right`, its columns one after the other, as those of LAPACK's Q are."""
    if first.ndim == 2:
        return torch.addmm(first.mT, right.mT, left.mT).mT
    flat = (each.mT.flatten(0, -3) for each in (first, right, left))
    return torch.baddbmm(*flat).reshape(first.mT.shape).mT


def _over(x: Tensor, inverse: PseudoInverse) -> Tensor:
    """X R⁻ᴴ: (..., m, k) -> (..., m, k)."""
    if isinstance(inverse, Triangular):
        return torch.linalg.solve_triangular(inverse.factor.mH, x, upper=False, left=False)
    return inverse.apply(x.mH).mH


def explicit_backward(
    inverse: PseudoInverse, Q: Tensor, R: Tensor, Q_bar: Tensor, R_bar: Tensor
) -> Tensor:
    """`backward` in differentiable calls."""
    m, k = Q.shape[-2:]
    others = R.shape[-1] - k
    R_bar = R_bar.triu()
    R1, R1_bar = (first_columns(each, k) for each in (R, R_bar))
    R2, R2_bar = (each.narrow(-1, k, others) for each in (R, R_bar))
    W = Q.mH @ Q_bar
    if others:
        W = W + R2 @ R2_bar.mH
    M = _mirrored(R1_bar @ R1.mH - W)
    if m > k:
        return inverse.apply((Q_bar + Q @ M).mH).mH
    leading = inverse.apply((W + M).mH).mH
    return Q @ (torch.cat([leading, R2_bar], dim=-1) if others else leading)


def _mirrored(N: Tensor) -> Tensor:
    """The Hermitian matrix of the upper triangle, with the real part of the diagonal."""
    return _with_real_diagonal(N.triu() + N.triu(1).mH)


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
    k = Q.shape[-1]
    others = R.shape[-1] - k
    R_bar = R_bar.triu()
    R1, R1_bar, G1, D1 = (first_columns(each, k) for each in (R, R_bar, gradient, direction))
    R2, R2_bar, D2 = (each.narrow(-1, k, others) for each in (R, R_bar, direction))
    V = inverse.apply_adjoint(D1.mH).mH
    S = Q.mH @ V
    T = _with_real_diagonal(S.triu() + S.tril(-1).mH)
    if others:
        Q_bar = Q_bar + Q @ (R2 @ R2_bar.mH)
    M = _mirrored(R1_bar @ R1.mH - Q.mH @ Q_bar)
    of_Q, of_R = V @ M - Q_bar @ T.mH, (T.mH @ R1_bar - V.mH @ G1).triu()
    of_Q_bar, of_R_bar = V - Q @ T, T @ R1
    if others:
        of_Q = of_Q + of_Q_bar @ (R2_bar @ R2.mH) + D2 @ R2_bar.mH
        of_R = torch.cat([of_R, (S - T) @ R2_bar], dim=-1)
        of_R_bar = torch.cat([of_R_bar, (S - T).mH @ R2 + Q.mH @ D2], dim=-1)
    return of_Q, of_R, of_Q_bar, of_R_bar


def jvp(inverse: PseudoInverse, Q: Tensor, R: Tensor, tangent: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of Q, (..., m, k), and R, (..., k, n), from that of A."""
    m, k = Q.shape[-2:]
    scaled = inverse.apply_adjoint(first_columns(tangent, k).mH).mH
    X = Q.mH @ scaled
    lower = X.tril(-1)
    skew = lower - lower.mH
    if X.is_complex():
        skew = skew + _imaginary_diagonal(X)
    R_tangent = (Q.mH @ tangent - skew @ R).triu()
    Q_tangent = Q @ skew
    if m > k:
        Q_tangent = Q_tangent + scaled - Q @ X
    return Q_tangent, R_tangent


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
