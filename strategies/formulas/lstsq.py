"""X = A⁺ B, the least-squares solution of least norm, at constant rank.

From Golub & Pereyra (1973), eq. 4.12 (see `formulas.pinv`) applied to B, with R = B − A X:

    dX = A⁺ (dB − dA X) + (AᴴA)⁺ dAᴴ R + (I − A⁺A) dAᴴ A⁺ᴴ X,

so that with Z = A⁺ᴴ G and w = A⁺ Z

    B̄ = Z,    Ā = −Z Xᴴ + R wᴴ + (A⁺ᴴ X) ((I − A⁺A) G)ᴴ:

O(mnk) from the factors that the forward already has.

At full column rank Z is A (AᴴA)⁺ G, too: where w is accurate enough, one product, A [w X], gives it.
"""

import torch
from torch import Tensor

from strategies.factors.pseudo_inverse import PseudoInverse
from strategies.formulas import solve
from strategies.formulas.matrices import product_by_columns


def backward(
    inverse: PseudoInverse,
    matrix: Tensor,
    rhs: Tensor,
    solution: Tensor,
    cotangent: Tensor,
    *,
    need_matrix: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """The gradients of A, unless it is left out, and of B from that of X."""
    if inverse.full_column_rank and inverse.full_row_rank:
        return solve.backward(inverse, solution, cotangent, need_matrix=need_matrix)
    if not need_matrix:
        if inverse.full_column_rank and inverse.has_stable_gram:
            return None, matrix @ inverse.apply_gram(cotangent)
        return None, inverse.apply_adjoint(cotangent)
    (left, right), Z = outer_factors(inverse, matrix, rhs, solution, cotangent)
    # Outer products of k columns each, joined so that the m×n result is written once.
    return product_by_columns(torch.cat(left, dim=-1), torch.cat(right, dim=-1).mH), Z


def outer_factors(
    inverse: PseudoInverse, matrix: Tensor, rhs: Tensor, solution: Tensor, cotangent: Tensor
) -> tuple[tuple[list[Tensor], list[Tensor]], Tensor]:
    """Ā as a sum of products `left @ right.mH` of k columns each, and B̄.

    A and B are not read where A is square and of full rank.
    """
    if inverse.full_column_rank and inverse.has_stable_gram:
        w = inverse.apply_gram(cotangent)
        products = product_by_columns(matrix, torch.cat((w, solution), dim=-1))
        k = solution.shape[-1]
        Z, fitted = products[..., :k], products[..., k:]
        return ([Z, rhs - fitted], [-solution, w]), Z
    coordinates = inverse.solve_adjoint(cotangent)
    Z = inverse.from_range(coordinates)
    left, right = [Z], [-solution]
    if not inverse.full_row_rank:
        left.append(_residual(inverse, matrix, rhs, solution))
        right.append(inverse.solve(coordinates))
    if not inverse.full_column_rank:
        left.append(inverse.apply_adjoint(solution))
        right.append(inverse.null_complement(cotangent))
    return (left, right), Z


def jvp(
    inverse: PseudoInverse,
    matrix: Tensor,
    rhs: Tensor,
    solution: Tensor,
    matrix_tangent: Tensor | None,
    rhs_tangent: Tensor | None,
) -> Tensor:
    """The tangent of X, (..., n, k), from those of A and B; None stands for zero."""
    result = inverse.apply(solve.rhs_tangent(solution, matrix_tangent, rhs_tangent))
    if matrix_tangent is None:
        return result
    adjoint_tangent = matrix_tangent.mH
    if not inverse.full_row_rank:
        residual = _residual(inverse, matrix, rhs, solution)
        result = result + inverse.apply_gram(adjoint_tangent @ residual)
    if not inverse.full_column_rank:
        through_null = adjoint_tangent @ inverse.apply_adjoint(solution)
        result = result + inverse.null_complement(through_null)
    return result


def second_backward(
    inverse: PseudoInverse,
    matrix: Tensor,
    rhs: Tensor,
    solution: Tensor,
    cotangent: Tensor,
    of_matrix: Tensor | None,
    of_rhs: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of A, B and G from those of the gradients of A and B, at full rank; None is zero.

    As second derivatives are symmetric, they are the tangents of Ā, B̄ and X along these. Z is (Aᴴ)⁺ G,
    whose tangent is that of a solution, too, and so are those of w and A⁺ᴴ X.
    """
    of_adjoint = None if of_matrix is None else of_matrix.mH
    adjoint, of_X = inverse.adjoint, jvp(inverse, matrix, rhs, solution, of_matrix, of_rhs)

    def tangent_of_adjoint(b: Tensor, x: Tensor, of_b: Tensor | None) -> Tensor:
        if of_adjoint is of_b is None:
            return torch.zeros_like(x)
        return jvp(adjoint, matrix.mH, b, x, of_adjoint, of_b)

    Z = inverse.apply_adjoint(cotangent)
    of_Z = tangent_of_adjoint(cotangent, Z, None)
    left, right = [-of_Z, -Z], [solution, of_X]
    if not inverse.full_row_rank:
        w = inverse.apply(Z)
        left.append(solve.rhs_tangent(solution, of_matrix, of_rhs) - matrix @ of_X)
        left.append(_residual(inverse, matrix, rhs, solution))
        right += w, jvp(inverse, matrix, Z, w, of_matrix, of_Z)
    if not inverse.full_column_rank:
        Y = inverse.apply_adjoint(solution)
        of_null = -matrix.mH @ of_Z if of_adjoint is None else -of_adjoint @ Z - matrix.mH @ of_Z
        left += tangent_of_adjoint(solution, Y, of_X), Y
        right += inverse.null_complement(cotangent), of_null
    return torch.cat(left, -1) @ torch.cat(right, -1).mH, of_Z, of_X


def _residual(inverse: PseudoInverse, matrix: Tensor, rhs: Tensor, solution: Tensor) -> Tensor:
    """R, orthogonal to A to roundoff of R.

    Where dA moves along the range of A, dAᴴ R is zero, but (AᴴA)⁺ would magnify the rounding of A X in it
    by the square of the condition.
    """
    return inverse.range_complement(rhs - matrix @ solution)
