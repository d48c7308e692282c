"""A = L Lᴴ, and A⁻¹ B and A⁻¹ from the factor L.

**The factor.** With Φ(M) the lower triangle of M, its diagonal halved (Murray 2016, "Differentiation of
the Cholesky decomposition", arXiv 1602.07527):

    dL = L Φ(L⁻¹ dA L⁻ᴴ)        Ā = (M + Mᴴ) / 2,  M = L⁻ᴴ Φ(Lᴴ L̄) L⁻¹.

A column of L depends on no diagonal entry further down, where these formulas divide by them and multiply
with them again. With Ψ(M) = M − Φ(M), an upper triangle, and L⁻ᴴ Lᴴ L̄ = L̄ they are

    dL = tril(dA L⁻ᴴ − L Ψ(L⁻¹ dA L⁻ᴴ))        M = (L̄ − L⁻ᴴ Ψ(Lᴴ L̄)) L⁻¹.

A is Hermitian, and so is its gradient, by convention: a tangent is paired with its Hermitian part.

**A⁻¹ B.** X = L⁻ᴴ L⁻¹ B has the gradients of a system with A, B̄ = W = A⁻ᴴ G and Ā = −W Xᴴ, and with
dA = dL Lᴴ + L dLᴴ

    L̄ = (Ā + Āᴴ) L = −(W (Lᴴ X)ᴴ + X (Lᴴ W)ᴴ),  Lᴴ X = L⁻¹ B,  Lᴴ W = L⁻¹ G:

two outer products of rank k, no product of n×n matrices.

**A⁻¹.** dA⁻¹ = −A⁻¹ dA A⁻¹ and A⁻¹ L = L⁻ᴴ give L̄ = −A⁻¹ (Ḡ + Ḡᴴ) L⁻ᴴ.

Both are, as in PyTorch, the gradients of functions of L Lᴴ for any L, at one that is zero above its
diagonal. So they have entries there, too, where neither function reads L.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from strategies.factors.nonsingular import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.formulas.domains import hermitian_part
from strategies.formulas.quadratic import QuadraticEquation

Factor = Callable[[Tensor, Structure], PseudoInverse]


def _half_upper(matrix: Tensor) -> Tensor:
    """Ψ."""
    upper = matrix.triu()
    return torch.sub(upper, upper.tril(), alpha=0.5)


def backward(factor: Factor, L: Tensor, cotangent: Tensor) -> Tensor:
    """The Hermitian gradient of A from that of L, of which only the lower triangle is read."""
    inverse, lower = factor(L, Structure.LOWER), cotangent.tril()
    middle = lower - inverse.apply_adjoint(_half_upper(L.mH @ lower))
    return hermitian_part(inverse.apply_adjoint(middle.mH).mH)


def jvp(factor: Factor, L: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of L from that of A, both (..., n, n)."""
    inverse = factor(L, Structure.LOWER)
    change = inverse.apply(hermitian_part(tangent)).mH
    return (change - L @ _half_upper(inverse.apply(change))).tril()


class Equation(QuadraticEquation):
    """L Lᴴ = A, of which the Hermitian part counts."""

    def push(self, L: Tensor, tangent: Tensor) -> Tensor:
        return jvp(Triangular, L, tangent)

    def pull(self, L: Tensor, cotangent: Tensor) -> Tensor:
        return backward(Triangular, L, cotangent)

    def second(self, dL: Tensor, other: Tensor) -> Tensor:
        product = dL @ other.mH
        return product + product.mH

    def second_adjoint(self, dL: Tensor, gradient: Tensor) -> Tensor:
        return 2 * (hermitian_part(gradient) @ dL).tril()


def solve(inverse: PseudoInverse, rhs: Tensor) -> Tensor:
    """(L Lᴴ)⁻¹ B from L⁻¹; (..., n, k)."""
    return inverse.apply_adjoint(inverse.apply(rhs))


def solve_backward(
    inverse: PseudoInverse, rhs: Tensor, solution: Tensor, cotangent: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of L, a product of (..., n, 2k) and its like, and of B from that of X."""
    k = rhs.shape[-1]
    halfway = inverse.apply(torch.cat([rhs, cotangent], -1))
    rhs_gradient = inverse.apply_adjoint(halfway.narrow(-1, k, k))
    return -torch.cat([rhs_gradient, solution], -1) @ halfway.mH, rhs_gradient


def solve_second_backward(
    inverse: PseudoInverse,
    rhs: Tensor,
    solution: Tensor,
    cotangent: Tensor,
    of_L: Tensor | None,
    of_rhs: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of L, B and G, the cotangent, from those of the gradients of L and B; None is zero.

    With Z = A⁻¹G these are −(Z Xᴴ + X Zᴴ) L and Z. Along dL and dB they change by the tangents of X and Z,
    those of `solve_jvp`, where Lᴴ X = L⁻¹B and Lᴴ Z = L⁻¹G, so that Lᴴ dX + dLᴴ X = L⁻¹ (dB − dL L⁻¹B).
    """
    k = rhs.shape[-1]
    halfway = inverse.apply(torch.cat([rhs, cotangent], -1))
    Z = inverse.apply_adjoint(halfway[..., k:])
    both = torch.cat([solution, Z], -1)
    rest = torch.zeros_like(halfway) if of_L is None else -of_L @ halfway
    if of_rhs is not None:
        rest[..., :k] += of_rhs
    solved = inverse.apply(rest)
    tangents = inverse.apply_adjoint(solved if of_L is None else solved - of_L.mH @ both)
    of_X, of_Z = tangents[..., :k], tangents[..., k:]
    left = torch.cat([of_Z, of_X, Z, solution], -1)
    return -left @ torch.cat([halfway, solved], -1).mH, of_Z, of_X


def solve_jvp(
    inverse: PseudoInverse,
    halfway: Tensor,
    solution: Tensor,
    factor_tangent: Tensor | None,
    rhs_tangent: Tensor | None,
) -> Tensor:
    """The tangent of X = (L Lᴴ)⁻¹ B, L⁻ᴴ (L⁻¹ (dB − dL L⁻¹B) − dLᴴ X); None stands for zero.

    Given L⁻¹ and L⁻¹B, which Lᴴ X is, too, but with the error of X.
    """
    if factor_tangent is None:
        assert rhs_tangent is not None
        return solve(inverse, rhs_tangent)
    rest = -factor_tangent @ halfway
    if rhs_tangent is not None:
        rest = rest + rhs_tangent
    return inverse.apply_adjoint(inverse.apply(rest) - factor_tangent.mH @ solution)


def inverse_backward(inverse: PseudoInverse, result: Tensor, cotangent: Tensor) -> Tensor:
    """The gradient of L from that of A⁻¹, both (..., n, n): −(L⁻¹ (Ḡ + Ḡᴴ) A⁻¹)ᴴ."""
    return -inverse.apply((cotangent + cotangent.mH) @ result).mH


def inverse_second_backward(
    inverse: PseudoInverse, result: Tensor, gradient: Tensor, cotangent: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of L and of the cotangent of A⁻¹ from that of the gradient of L, all (..., n, n).

    The latter, −A⁻¹ H L⁻ᴴ with H = Ḡ + Ḡᴴ, changes by minus itself times (L⁻¹ dL)ᴴ, and by −dA⁻¹ H L⁻ᴴ.
    """
    of_cotangent = inverse_jvp(inverse, result, direction)
    of_inverse = of_cotangent @ inverse.apply(cotangent + cotangent.mH).mH
    return -(gradient @ inverse.apply(direction).mH + of_inverse), of_cotangent


def inverse_jvp(inverse: PseudoInverse, result: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of A⁻¹ from that of L: −(K + Kᴴ) with Kᴴ = L⁻ᴴ dLᴴ A⁻¹."""
    adjoint = inverse.apply_adjoint(tangent.mH @ result)
    return -(adjoint + adjoint.mH)
