"""det A as an expression that is smooth to every order at singular matrices.

Let PᵀA = L U, and let the columns of E be those of the identity at the negligible pivots. With
N = P L E and M = E

    [A   N]   [P L   ] [U   E]
    [Mᴴ  0] = [     I] [Eᴴ  0],

whose determinant is, up to its sign, the product of the other pivots: the bordered matrix is
nonsingular however singular A is, at the price of a gather. Jacobi's identity for complementary
minors holds for any N and M:

    det A = det(bordered) · det((bordered⁻¹)₂₂),

of which only the last factor, a k×k determinant, vanishes with A. That one is evaluated without a
division (R. S. Bird, "A simple division-free algorithm for computing determinants", Inf. Process.
Lett. 111 (2011)), so that every derivative of a vanishing determinant is finite and right.
"""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.formulas.lu import permute_rows

__all__ = ["border", "determinant"]


def border(LU: Tensor, inverse_order: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """N and M of the matrices of a batch, both (..., n, k), taken as constants.

    Args:
        LU: packed factors, (..., n, n).
        inverse_order: where each row of A went, (..., n).
        columns: of the negligible pivots, (..., k); others beside them do no harm.
    """
    index = columns.unsqueeze(-2).expand(*LU.shape[:-1], -1)
    rows = torch.arange(LU.shape[-1], device=LU.device).unsqueeze(-1)
    M = (rows == index).to(LU.dtype)
    return permute_rows(M + LU.gather(-1, index) * (rows > index), inverse_order), M


def determinant(matrix: Tensor, N: Tensor, M: Tensor) -> Tensor:
    """Det A, (..., n, n) -> (...), smooth where N and M take in all negligible pivots."""
    n, corank = N.shape[-2:]
    if corank == 0:
        return _nonsingular(matrix)
    corner = N.new_zeros(*N.shape[:-2], corank, corank)
    top = torch.cat([matrix, N], dim=-1)
    bottom = torch.cat([M.mH, corner], dim=-1)
    bordered = torch.cat([top, bottom], dim=-2)
    complement = torch.linalg.inv(bordered)[..., n:, n:]
    return _nonsingular(bordered) * _division_free(complement)


def _nonsingular(matrix: Tensor) -> Tensor:
    # Not torch.linalg.det: its second derivative is NaN at such matrices as [[0, 1], [1, 0]].
    sign, logabsdet = torch.linalg.slogdet(matrix)
    return sign * logabsdet.exp()


def _division_free(matrix: Tensor) -> Tensor:
    n = matrix.shape[-1]
    result = matrix
    for _ in range(n - 1):
        diagonal = result.diagonal(dim1=-2, dim2=-1)
        # μ(X): the strict upper triangle, and minus the sums of the diagonal entries further down.
        below = diagonal.flip(-1).cumsum(-1).flip(-1) - diagonal
        result = (result.triu(1) - torch.diag_embed(below)) @ matrix
    return (-1) ** (n - 1) * result[..., 0, 0]
