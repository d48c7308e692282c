"""X = A⁻¹ B and A⁻¹ itself, A square and nonsingular.

    dX = A⁻¹ (dB − dA X)        B̄ = A⁻ᴴ G,  Ā = −B̄ Xᴴ        (Giles 2008, section 2.3.1)

The inverse is the solution for B = I, whose gradient −A⁻ᴴ G A⁻ᴴ has A⁻ᴴ as a matrix: the forward's
own output.
"""

from torch import Tensor

from strategies.factors.pseudo_inverse import PseudoInverse


def backward(
    inverse: PseudoInverse, solution: Tensor, cotangent: Tensor, *, need_matrix: bool = True
) -> tuple[Tensor | None, Tensor]:
    """The gradients of A, (..., n, n) or None, and B, (..., n, k), from that of X."""
    rhs_gradient = inverse.apply_adjoint(cotangent)
    if not need_matrix:
        return None, rhs_gradient
    return rhs_gradient @ -solution.mH, rhs_gradient


def rhs_tangent(
    solution: Tensor, matrix_tangent: Tensor | None, rhs_tangent: Tensor | None
) -> Tensor:
    """DB − dA X, of which the tangent of X is the solution; None stands for zero."""
    if matrix_tangent is None:
        assert rhs_tangent is not None
        return rhs_tangent
    through_matrix = matrix_tangent @ solution
    return -through_matrix if rhs_tangent is None else rhs_tangent - through_matrix


def inv_backward(inverse: PseudoInverse, cotangent: Tensor) -> Tensor:
    """The gradient of A from that of A⁻¹: −A⁻ᴴ (A⁻¹ Gᴴ)ᴴ, both (..., n, n)."""
    return -inverse.apply_adjoint(inverse.apply(cotangent.mH).mH)


def inv_second_backward(
    inverse: Tensor, cotangent: Tensor | None, direction: Tensor, gradient: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients of ⟨Ā, D⟩ for the direction D by A or A⁻¹, and by G, all (..., n, n).

    Given Ā that by A, from dĀ = −A⁻ᴴ dAᴴ Ā − Ā dAᴴ A⁻ᴴ along dA. Else Ā = −A⁻ᴴ G A⁻ᴴ is taken for a
    function of A⁻¹ and G. That by G lies by columns, as PyTorch has inverses and hence their cotangents.
    """
    left, right = inverse @ direction, direction @ inverse
    of_cotangent = -(right.mT @ inverse.mT).mT
    if gradient is not None:
        return -(gradient @ left.mH + right.mH @ gradient), of_cotangent
    assert cotangent is not None
    return -(cotangent @ right.mH + left.mH @ cotangent), of_cotangent


def inv_jvp(inverse: Tensor, tangent: Tensor) -> Tensor:
    """The tangent of A⁻¹, −A⁻¹ dA A⁻¹, all (..., n, n)."""
    return -(inverse @ tangent @ inverse)
