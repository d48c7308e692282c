"""Square matrices of any rank, growth and scale, held so that the adjugate takes no division.

    A = 2^(rows + columns) · X diag(s) Yᴴ,   |det X · det Y| = 1

entry by entry, with a power of two for each row and each column that brings the largest entries to
about one. With cof(s)ᵢ = Πⱼ sⱼ over j ≠ i, which is finite where s has zeros,

    adj(A)ᴴ = 2^(Σ rows + Σ columns − rows − columns) · conj(det X det Yᴴ) X⁻ᴴ diag(conj cof(s)) Y⁻¹

and A⁻ᴴ is the same with 1/s for cof(s), without the sums. The products are held as mantissa and
exponent, so that nothing leaves the range of the dtype but what lies outside.

X and Y are triangular factors of the scaled matrix, PᵀB = L diag(s) Yᴴ. Where these have grown, too, or
a pivot before the last is zero, they are singular vectors: slower, and stable whatever the matrix.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from strategies.factors.determinant import FACTORS_ARE_USELESS, determinant
from strategies.factors.elimination import lu_factor_ex, sign
from strategies.factors.lu_rank import rest_is_roundoff
from strategies.formulas import det as formula
from strategies.formulas.lu import permute_rows
from strategies.formulas.powers_of_two import equilibrate, product, split, times_power_of_two

_ROUNDOFF = 3
"""Singular values that should be zero are at most twice ε beside the largest, from 3×3 to 128×128."""


class Diagonalized(NamedTuple):
    """What `diagonalize` returns, of a batch of n×n matrices.

    Attributes:
        left, right: X⁻ᴴ and Y⁻¹, (b, n, n).
        values: s, (b, n).
        phase: det X · det Yᴴ, (b,).
        vanishes: which entries of the adjugate are exactly zero, all from corank two on, bool (b, n, n).
        rows, columns: exponents, int32 (b, n).
    """

    left: Tensor
    values: Tensor
    right: Tensor
    phase: Tensor
    vanishes: Tensor
    rows: Tensor
    columns: Tensor

    @property
    def negligible(self) -> int:
        """How many of s are at most √ε of the largest, in the matrix which has most."""
        sizes = self.values.abs()
        small = torch.finfo(sizes.dtype).eps ** 0.5 * sizes.amax(-1, keepdim=True)
        return int((sizes <= small).sum(-1).max())

    def det(self) -> tuple[Tensor, Tensor]:
        """Mantissa and exponent of det A, (b,) both."""
        mantissa, exponent = product(self.values)
        return self.phase * mantissa, exponent + self.rows.sum(-1) + self.columns.sum(-1)

    def adjugate_adjoint(self, scale: Tensor) -> Tensor:
        """A number for each matrix, (b,), times adj(A)ᴴ: (b, n, n)."""
        is_zero = self.values == 0
        total, exponent = product(torch.where(is_zero, 1, self.values))
        mantissas, exponents = split(torch.where(is_zero, 1, self.values))
        cofactors, exponents = total.unsqueeze(-1) / mantissas, exponent.unsqueeze(-1) - exponents
        zeros = is_zero.sum(-1, keepdim=True)
        cofactors = cofactors.masked_fill((zeros > 1) | ((zeros == 1) & ~is_zero), 0)
        power = self.rows.sum(-1) + self.columns.sum(-1)
        result = self._combined(scale * self.phase.conj(), cofactors.conj(), exponents, power)
        return result.masked_fill(self.vanishes, 0)

    def inverse_adjoint(self, scale: Tensor) -> Tensor:
        """A number for each matrix, (b,), times A⁻ᴴ: (b, n, n)."""
        mantissas, exponents = split(self.values.conj())
        return self._combined(scale, 1 / mantissas, -exponents, torch.zeros_like(self.rows[..., 0]))

    def _combined(
        self, scale: Tensor, mantissas: Tensor, exponents: Tensor, power: Tensor
    ) -> Tensor:
        exponents = torch.where(mantissas == 0, exponents.amin(-1, keepdim=True), exponents)
        most = exponents.amax(-1, keepdim=True)
        middle = times_power_of_two(mantissas, exponents - most)
        result = (self.left * middle.unsqueeze(-2)) @ self.right * scale[..., None, None]
        power = (power.unsqueeze(-1) + most).unsqueeze(-1)
        return times_power_of_two(
            result, power - self.rows.unsqueeze(-1) - self.columns.unsqueeze(-2)
        )


def diagonalize(A: Tensor, most: float = math.inf) -> Diagonalized:
    """Factor a batch of matrices, (b, n, n), of whatever rank and scale.

    One with entries that are not finite stands for itself alone. No entry of Y⁻¹ is larger than `most`,
    which a small pivot before the last makes them.
    """
    matrix, rows, columns = equilibrate(A)
    LU, pivots, _ = lu_factor_ex(matrix)
    _, notes, order = determinant(matrix, LU, pivots)
    parts = _by_elimination(LU, pivots, order)
    _, _, right, *_ = parts
    useless = (notes[..., 2] == FACTORS_ARE_USELESS) | (right.abs() > most).flatten(1).any(-1)
    if bool(useless.any()):
        # Zeros for the others, since NaN would not converge.
        others = _by_singular_vectors(matrix.masked_fill(~useless[:, None, None], 0), LU)
        parts = tuple(
            torch.where(useless.view(-1, *[1] * (part.ndim - 1)), other, part)
            for part, other in zip(parts, others, strict=True)
        )
    return Diagonalized._make((*parts, rows, columns))


def _by_elimination(LU: Tensor, pivots: Tensor, order: Tensor) -> tuple[Tensor, ...]:
    n = LU.shape[-1]
    identity = torch.eye(n, dtype=LU.dtype, device=LU.device).expand(LU.shape)
    values = LU.diagonal(dim1=-2, dim2=-1)
    left = torch.linalg.solve_triangular(LU.mH, identity, upper=True, unitriangular=True)
    scaled = (LU / values.unsqueeze(-1)).mH
    right = torch.linalg.solve_triangular(scaled, identity, upper=False, unitriangular=True)
    phase = formula.permutation_sign(LU, pivots)
    vanishes = torch.zeros_like(LU, dtype=torch.bool)
    if n >= 2:
        vanishes |= rest_is_roundoff(LU, n - 2)[:, None, None]
    return permute_rows(left, order), values, right, phase, vanishes


def _by_singular_vectors(matrix: Tensor, LU: Tensor) -> tuple[Tensor, ...]:
    left, values, right = torch.linalg.svd(matrix)
    roundoff = _ROUNDOFF * torch.finfo(values.dtype).eps * values[..., :1]
    vanishes = (values <= roundoff).sum(-1) > 1
    # Singular vectors are not exact where the adjugate is zero beside a row or column of zeros.
    no_row, no_column = ((matrix == 0).all(dim) for dim in (-1, -2))
    beside = (no_row.sum(-1, keepdim=True) > no_row.int()).unsqueeze(-1) | (
        no_column.sum(-1, keepdim=True) > no_column.int()
    ).unsqueeze(-2)
    # What elimination finds exactly zero is as good as that.
    is_singular = (LU.diagonal(dim1=-2, dim2=-1) == 0).any(-1, keepdim=True)
    values[..., -1:] = values[..., -1:].masked_fill(is_singular, 0)
    phase = sign(left @ right)
    return left, values.to(matrix.dtype), right, phase, beside | vanishes[:, None, None]
