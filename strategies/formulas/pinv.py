"""P = A⁺ at constant rank.

Golub & Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate", SIAM J. Numer. Anal. 10 (1973), eq. 4.12:

    dA⁺ = −A⁺ dA A⁺ + (AᴴA)⁺ dAᴴ (I − A A⁺) + (I − A⁺A) dAᴴ (A Aᴴ)⁺.

Paired with a cotangent G of A⁺, with W = Gᴴ and K = A⁺ W:

    Ā = −A⁺ᴴ Kᴴ + (I − A A⁺) W (AᴴA)⁺ + A⁺ᴴ K (I − A⁺A).

**Second derivatives** of tall A = Q R of full rank: for constant R, A⁺ = R⁻¹ (A R⁻¹)⁺, and A R⁻¹ is Q.
Paired with a direction U, where V = U R⁻¹, H = R⁻ᴴG, S = QᴴV, K = H Q, and V' = V − Q S and H' = H − K Qᴴ
are out of the range of Q, the gradients of Ā with respect to A and G are

    (Q (SᴴK + K Sᴴ − H'V' − (H'V')ᴴ) − V' (K + Kᴴ) − H'ᴴ (S + Sᴴ)) R⁻ᴴ,    R⁻¹ (V'ᴴ − S Qᴴ).
"""

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas.matrices import product_by_columns
from strategies.formulas.solve import inv_backward


def backward(inverse: PseudoInverse, matrix: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of A from that of A⁺.

    With c = to_range and S = (AᴴA)⁺ the three terms regroup to

        Ā = W S + from_range(solve_adjoint(K (I − A⁺A) − Kᴴ) − c(W) S),

    three products of m×n×n for a tall A and everything else n×n. A wide A is its adjoint's problem.

    Of the matrix only shape, dtype and device are read.
    """
    m, n = matrix.shape[-2:]
    if m < n:
        return backward(inverse.adjoint, matrix.mH, cotangent.mH).mH
    if inverse.full_row_rank:
        return inv_backward(inverse, cotangent)
    W = cotangent.mH
    in_range = inverse.to_range(W)
    K = inverse.solve(in_range)
    crossing = -K.mH if inverse.full_column_rank else inverse.null_complement(K.mH).mH - K.mH
    through_inverse = inverse.solve_adjoint(crossing)
    identity = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    gram = inverse.apply_gram(identity.expand(*matrix.shape[:-2], n, n))
    gradient = product_by_columns(W, gram)
    inverse.add_from_range(through_inverse - in_range @ gram, gradient)
    return gradient


def jvp(inverse: PseudoInverse, matrix: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of A⁺ from that of A, (..., m, n) -> (..., n, m)."""
    m, n = matrix.shape[-2:]
    if m < n:
        return jvp(inverse.adjoint, matrix.mH, tangent.mH).mH
    pinv, in_range = inverse.dense(), inverse.to_range(tangent)
    change = -in_range @ pinv
    if not inverse.full_row_rank:
        change = change + inverse.solve_adjoint(inverse.range_complement(tangent).mH)
    result = inverse.solve(change)
    if not inverse.full_column_rank:
        # Eᴴ A⁺ᴴ A⁺, as Eᴴ from_range(y) is to_range(E)ᴴ y.
        result = result + inverse.null_complement(in_range.mH) @ inverse.solve_adjoint(pinv)
    return result


def second_backward(
    Q: Tensor, R: PseudoInverse, cotangent: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of Ā, paired with a direction, with respect to A and G; tall A = Q R of full rank."""
    V, H = R.apply_adjoint(direction.mH).mH, R.apply_adjoint(cotangent)
    S, K = Q.mH @ V, H @ Q
    V, H = V - Q @ S, H - K @ Q.mH
    crossing = H @ V
    in_range = S.mH @ K + K @ S.mH - crossing - crossing.mH
    of_Q = Q @ in_range - V @ (K + K.mH) - H.mH @ (S + S.mH)
    return R.apply(of_Q.mH).mH, R.apply(V.mH - S @ Q.mH)
