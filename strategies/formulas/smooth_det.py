"""det A and A⁻¹ as expressions that are smooth and accurate to every order, at singular matrices, too.

Let B be A with rows and columns scaled by powers of two, and B = U S Vᴴ its singular value
decomposition at the point where derivatives are wanted. With U and V constant,

    T = Uᴴ B V,    det B = det(U Vᴴ) · det T,    B⁻¹ = V T⁻¹ Uᴴ,

and T is S there: no elimination of it grows. Let S₂ be the negligible singular values, S₁ the others,
and split T alike. Then

    det T = det S₁ · det(T₁₁ S₁⁻¹) · det(T₂₂ − T₂₁ T₁₁⁻¹ T₁₂),

of which only the last factor, a k×k determinant, vanishes with A. That one is evaluated without a
division (R. S. Bird, "A simple division-free algorithm for computing determinants", Inf. Process.
Lett. 111 (2011)), so that every derivative of a vanishing determinant is finite and right.

With k = 1 nothing is divided by a singular value that is small, but not negligible: in the derivative of
the gradient, det A (tr(A⁻¹F) A⁻¹ − A⁻¹F A⁻¹)ᴴ for F = dA, what is divided by it twice cancels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from strategies.formulas.powers_of_two import equilibrate, product, times_power_of_two

__all__ = ["det_gradient", "inverse"]


class _Basis(NamedTuple):
    """Constants: B = 2^−powers · A entry by entry, and its singular value decomposition."""

    powers: Tensor
    U: Tensor
    S: Tensor
    V: Tensor

    @classmethod
    def of(cls, A: Tensor) -> _Basis:
        matrix, rows, columns = equilibrate(A.detach())
        finite = torch.where(
            matrix.isfinite(), matrix, 0
        )  # the decomposition of NaN raises an error
        U, S, VH = torch.linalg.svd(finite)
        return cls(rows.unsqueeze(-1) + columns.unsqueeze(-2), U, S.to(A.dtype), VH.mH)

    def coordinates(self, A: Tensor) -> Tensor:
        """T."""
        return self.U.mH @ times_power_of_two(A, -self.powers) @ self.V


def det_gradient(A: Tensor, corank: int, cotangent: Tensor) -> Tensor:
    """The gradient of det A, (..., n, n), smooth in A and its cotangent, (...).

    Args:
        A: (..., n, n).
        corank: how many singular values are negligible at most, at least one, or one for a small one.
        cotangent: (...).
    """
    basis = _Basis.of(A)
    regular = A.shape[-1] - corank
    large = basis.S[..., :regular]
    nonzero = torch.where(large == 0, 1, large)
    mantissa, exponent = product(nonzero)
    phase = torch.linalg.slogdet(basis.U @ basis.V.mH).sign

    def det(T: Tensor) -> Tensor:
        if regular == 0:
            return phase * _division_free(T)
        T11, T12 = T[..., :regular, :regular], T[..., :regular, regular:]
        T21, T22 = T[..., regular:, :regular], T[..., regular:, regular:]
        near_identity = T11 / nonzero.unsqueeze(-2)
        # Not by solve or slogdet, whose forward mode does not nest (PyTorch issue 198017).
        solution = (torch.linalg.inv(near_identity) @ T12) / nonzero.unsqueeze(-1)
        of_identity = torch.linalg.lu_factor(near_identity).LU.diagonal(dim1=-2, dim2=-1).prod(-1)
        complement = T22 - T21 @ solution
        return phase * mantissa * of_identity * _division_free(complement)

    pullback = torch.func.vjp(det, basis.coordinates(A))[1]
    (of_T,) = pullback(cotangent)
    # Of det A = 2^total · det(T): the powers of its rows and columns are each counted n times.
    total = basis.powers.sum((-2, -1)) // A.shape[-1] + exponent
    return times_power_of_two(basis.U @ of_T @ basis.V.mH, total[..., None, None] - basis.powers)


def inverse(A: Tensor) -> Tensor:
    """A⁻¹, (..., n, n), of nonsingular matrices."""
    basis = _Basis.of(A)
    S = basis.S.unsqueeze(-2)
    scaled = (basis.V / S) @ torch.linalg.inv(basis.coordinates(A) / S) @ basis.U.mH
    return times_power_of_two(scaled, -basis.powers.mT)


def _division_free(matrix: Tensor) -> Tensor:
    n = matrix.shape[-1]
    result = matrix
    for _ in range(n - 1):
        diagonal = result.diagonal(dim1=-2, dim2=-1)
        # μ(X): the strict upper triangle, and minus the sums of the diagonal entries further down.
        below = diagonal.flip(-1).cumsum(-1).flip(-1) - diagonal
        result = (result.triu(1) - torch.diag_embed(below)) @ matrix
    return (-1) ** (n - 1) * result[..., 0, 0]
