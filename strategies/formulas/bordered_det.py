"""det A as an expression that is smooth to every order at singular matrices.

Let the columns of N and M span the k smallest left and right singular directions of A. The bordered
matrix [[A, N], [Mᴴ, 0]] is nonsingular however singular A is in those directions, and Jacobi's
identity for complementary minors gives

    det A = det(bordered) · det((bordered⁻¹)₂₂),

of which only the last factor, a k×k determinant, vanishes with A. That one is evaluated without a
division (R. S. Bird, "A simple division-free algorithm for computing determinants", Inf. Process.
Lett. 111 (2011)), so that every derivative of a vanishing determinant is finite and right.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["border", "determinant"]


def border(matrix: Tensor, corank: int) -> tuple[Tensor, Tensor]:
    """N and M, (..., n, corank), of the matrices of a batch, taken as constants."""
    U, _, Vh = torch.linalg.svd(matrix)
    first = matrix.shape[-1] - corank
    return U[..., first:], Vh.mH[..., first:]


def determinant(matrix: Tensor, N: Tensor, M: Tensor) -> Tensor:
    """Det A, (..., n, n) -> (...), smooth where N and M span all negligible directions."""
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
