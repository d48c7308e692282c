"""The QR factorization, with Q formed from the reflectors that LAPACK and cuSOLVER leave, or kept as these.

On the CPU and of single matrices that is done by their own routines. On CUDA these go through a batch one
matrix after the other. There Q = H₁ … H_n, H_i = I − τ_i v_i v_iᴴ, is taken as I − V T Vᴴ with

    T⁻¹ = diag(1/τ) + the strict upper triangle of VᴴV

(Puglisi, "Modification of the Householder method based on the compact WY representation", 1992; Joffrain,
Low, Quintana-Ortí, van de Geijn & Van Zee, "Accumulating Householder transformations, revisited", 2006),
in products and solves of the whole batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from strategies.factors.nonsingular import Triangular
from strategies.factors.pseudo_inverse import PseudoInverse, Structure

_FEW = 8


def qr(A: Tensor) -> tuple[Tensor, Tensor]:
    """The reduced QR factorization of A, (..., m, n) with m ≥ n."""
    if not is_batch_on_cuda(A):
        Q, R = torch.linalg.qr(A)
        return Q, R
    reflectors, scales = torch.geqrf(A)
    # The device makes NaN of complex entries whose squares underflow; LAPACK scales them.
    if not bool(reflectors.isfinite().all() & scales.isfinite().all()):
        Q, R = torch.linalg.qr(A.cpu())
        return Q.to(A.device), R.to(A.device)
    return basis(reflectors, scales), reflectors[..., : A.shape[-1], :].triu()


def basis(reflectors: Tensor, scales: Tensor) -> Tensor:
    """The first n columns of Q, (..., m, n)."""
    if not is_batch_on_cuda(reflectors):
        return torch.linalg.householder_product(reflectors, scales)
    n = reflectors.shape[-1]
    V, T_inverse = _compact(reflectors, scales)
    Q = -V @ torch.linalg.solve_triangular(T_inverse, V[..., :n, :].mH, upper=True)
    Q.diagonal(dim1=-2, dim2=-1).add_(1)
    return Q


def apply(reflectors: Tensor, scales: Tensor, x: Tensor, *, adjoint: bool = False) -> Tensor:
    """Q x, or Qᴴ x, (..., m, k)."""
    if not is_batch_on_cuda(reflectors):
        return torch.ormqr(reflectors, scales, x, transpose=adjoint)
    V, T_inverse = _compact(reflectors, scales)
    triangle = T_inverse.mH if adjoint else T_inverse
    return x - V @ torch.linalg.solve_triangular(triangle, V.mH @ x, upper=not adjoint)


def is_batch_on_cuda(matrices: Tensor) -> bool:
    """Whether Q is taken in products and solves."""
    return matrices.is_cuda and matrices.ndim > 2 and matrices.numel() > 0


def _compact(reflectors: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    """V and the inverse of T; a column that is not reflected has no part in them."""
    m, n = reflectors.shape[-2:]
    identity = torch.eye(m, n, dtype=reflectors.dtype, device=reflectors.device)
    is_reflected = scales != 0
    V = (reflectors.tril(-1) + identity) * is_reflected.unsqueeze(-2)
    T_inverse = (V.mH @ V).triu(1)
    reciprocals = torch.where(is_reflected, 1 / torch.where(is_reflected, scales, 1), 1)
    return V, T_inverse + torch.diag_embed(reciprocals)


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
        return basis(self.reflectors, self.scales)

    @property
    def rank(self) -> Tensor:
        return self._core.rank

    def to_range(self, b: Tensor) -> Tensor:
        rotated = apply(self.reflectors, self.scales, b, adjoint=True)
        return rotated[..., : self.scales.shape[-1], :]

    def from_range(self, c: Tensor) -> Tensor:
        m, n = self.reflectors.shape[-2:]
        return apply(self.reflectors, self.scales, pad(c, (0, 0, 0, m - n)))

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

    def dense(self) -> Tensor:
        return self.solve(self.basis().mH)
