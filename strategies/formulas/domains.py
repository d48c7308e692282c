"""Which matrices an operation takes, and what it reads of them.

Test inputs are made from matrices of any kind: `Domain.member` brings one into the domain and keeps its
singular values. Derivatives exist along the domain only: `Domain.part`, the projection onto its linear
span, keeps finite differences in it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Domain:
    """A set of matrices.

    Attributes:
        member: from any matrices, (..., m, n), to members with the same singular values.
        part: from any matrices to the nearest ones in the linear span of the domain.
    """

    member: Callable[[Tensor], Tensor]
    part: Callable[[Tensor], Tensor]


def hermitian_part(matrix: Tensor) -> Tensor:
    """(M + Mᴴ) / 2 of square matrices, (..., n, n)."""
    total = matrix + matrix.mH
    return torch.sub(total, total, alpha=0.5)  # a number would be a constant: see `sums`


def _polar_factor(matrix: Tensor) -> Tensor:
    """V S Vᴴ of M = U S Vᴴ."""
    if not bool(matrix.isfinite().all()):
        return matrix
    _, s, vh = torch.linalg.svd(matrix)
    return hermitian_part((vh.mH * s.unsqueeze(-2)) @ vh)


def _triangular_factor(matrix: Tensor) -> Tensor:
    """L of M = L Q, the diagonal of L not negative."""
    L = torch.linalg.qr(matrix.mH).R.mH.tril()
    diagonal = L.diagonal(dim1=-2, dim2=-1)
    return L * torch.where(diagonal == 0, 1, diagonal.sgn()).conj().unsqueeze(-2)


def _triangular_part(matrix: Tensor) -> Tensor:
    lower = matrix.tril()
    if not matrix.is_complex():
        return lower
    return lower - torch.diag_embed(1j * lower.diagonal(dim1=-2, dim2=-1).imag)


GENERAL = Domain(member=lambda matrix: matrix, part=lambda matrix: matrix)
"""All matrices."""

POSITIVE_DEFINITE = Domain(member=_polar_factor, part=hermitian_part)
"""Hermitian positive definite matrices, of which the lower triangle is read."""

LOWER_TRIANGULAR = Domain(member=_triangular_factor, part=_triangular_part)
"""Lower triangular matrices with a positive diagonal; the other triangle is not read."""
