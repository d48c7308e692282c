"""A tall matrix by its QR factorization, with Q as the reflectors in which LAPACK finds it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from strategies.factors import householder
from strategies.factors.nonsingular import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure

_FEW = 8


@dataclass(frozen=True, eq=False)
class Reflected(PseudoInverse):
    """F⁺ = R⁻¹Qᴴ of a tall F = Q R of full column rank, by reflections and substitution.

    To form Q takes as long as to find it. Where least squares have few right-hand sides (see
    `pays`), applying the reflectors takes less.

    Args:
        matrix: F, (..., m, n).
        reflectors: R on and above the diagonal, and below it what makes Q, (..., m, n): LAPACK geqrf.
        scales: of the reflectors, (..., n).

    Example:
        >>> F = torch.tensor([[3.0], [4.0]])
        >>> Reflected.of(F).apply(torch.tensor([[6.0], [8.0]])).round(decimals=4)
        tensor([[2.]])
    """

    matrix: Tensor
    reflectors: Tensor
    scales: Tensor

    full_column_rank = True
    full_row_rank = False
    has_stable_gram = True

    @staticmethod
    def pays(matrix: Tensor, rhs: Tensor) -> bool:
        """Whether it takes less to reflect so many right-hand sides than to form Q for the backward."""
        m, n = matrix.shape[-2:]
        return m > n and matrix.numel() > 0 and 2 * rhs.shape[-1] <= max(n, _FEW)

    @classmethod
    def of(cls, matrix: Tensor) -> Self:
        """The factors of a batch of matrices, (..., m, n) with m ≥ n."""
        return cls(matrix, *torch.geqrf(matrix))

    @property
    def packed_R(self) -> Tensor:  # noqa: N802 - R is its name
        """R in its upper triangle, (..., n, n); what is below is not part of it."""
        return self.reflectors[..., : self.scales.shape[-1], :]

    @property
    def _core(self) -> Triangular:
        return Triangular(self.packed_R, Structure.UPPER)

    def basis(self) -> Tensor:
        """The columns of Q that span the range, formed: (..., m, n)."""
        return householder.basis(self.reflectors, self.scales)

    @property
    def rank(self) -> Tensor:
        return self._core.rank

    def to_range(self, b: Tensor) -> Tensor:
        rotated = householder.apply(self.reflectors, self.scales, b, adjoint=True)
        return rotated[..., : self.scales.shape[-1], :]

    def from_range(self, c: Tensor) -> Tensor:
        m, n = self.reflectors.shape[-2:]
        return householder.apply(self.reflectors, self.scales, pad(c, (0, 0, 0, m - n)))

    def solve(self, c: Tensor) -> Tensor:
        return self._core.solve(c)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self._core.solve_adjoint(x)

    def apply_gram(self, x: Tensor) -> Tensor:
        return self.corrected_gram(x, lambda w: self.matrix.mH @ (self.matrix @ w))

    def corrected_gram(self, x: Tensor, product: Callable[[Tensor], Tensor]) -> Tensor:
        """R⁻¹R⁻ᴴx, corrected once by products with FᴴF (corrected semi-normal equations, Björck 1987)."""
        found = super().apply_gram(x)
        return found + super().apply_gram(x - product(found))

    def null_complement(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def dense(self) -> Tensor:
        return self.solve(self.basis().mH)
