"""A complete orthogonal decomposition from a rank-revealing QR, for any rank."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from strategies.accuracy_classes import FACTORS_U_ORTHOGONALLY
from strategies.errors import LinAlgError
from strategies.factors import Orthogonal, Reflected, Triangular
from strategies.interface import Strategy, Tolerance, rank_threshold
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["QRPinv"]

_NOISE = 8  # in ε; with less, two QRs in a row misjudge some rank-deficient 2×2 and 3×3 matrices


class QRPinv(Strategy):
    """A = U Tᴴ Vᴴ with orthonormal U, V and triangular T (Golub & Van Loan, section 5.4.7).

    A = Q R first. Where ‖R⁻¹‖ proves full rank that is all, and costs what `triangular_solve` costs;
    else a QR of the n×n R with column pivoting (LAPACK geqp3) reveals the rank r, and the rows that
    remain are compressed by another QR to T. PyTorch has no pivoted QR, so R visits the host there.
    A randomized URV would not have to, but misjudges the rank of about one small matrix in a
    thousand, for want of pivoting.

    The cut is a rank decision at noise level: max(m, n, 8)·ε where no tolerance is given. One far
    above it drops what an SVD would drop only approximately.

    Example:
        >>> import torch, strategies
        >>> F = strategies.get("qr_pinv").factor(torch.ones(3, 2))
        >>> F.rank, F.dense()[0, 0].round(decimals=4)
        (tensor(1), tensor(0.1667))
    """

    name = "qr_pinv"
    summary = "complete orthogonal decomposition from a rank-revealing QR; triangular solves"
    requires_full_rank = False
    accuracy = FACTORS_U_ORTHOGONALLY

    def factor_tall(self, matrix: Tensor, *, rtol: Tolerance, atol: Tolerance) -> PseudoInverse:
        if rtol is None and atol is None:
            rtol = _default_tolerance(matrix)
        Q, R = torch.linalg.qr(matrix)
        return _of_qr(Q, R, rtol, atol)

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        Q, R = torch.linalg.qr(structure.dense(matrix))
        return _of_qr(Q, R, 0.0, 0.0)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        if not Reflected.pays(matrix, rhs):
            return NotImplemented
        if rtol is None:
            rtol = _default_tolerance(matrix)
        reflected = Reflected.of(matrix)
        R = reflected.packed_R.triu()
        if _proves_full_rank(R, matrix.shape, rtol, None):
            return reflected.apply(rhs), reflected
        complete = _complete(reflected.basis(), R, rtol, None)
        return complete.apply(rhs), complete


def _default_tolerance(matrix: Tensor) -> float:
    return max(*matrix.shape[-2:], _NOISE) * torch.finfo(matrix.dtype).eps


def _of_qr(Q: Tensor, R: Tensor, rtol: Tolerance, atol: Tolerance) -> Orthogonal:
    m, n = Q.shape[-2:]
    if not _proves_full_rank(R, Q.shape, rtol, atol):
        return _complete(Q, R, rtol, atol)
    core = Triangular(R, Structure.UPPER)
    return Orthogonal(Q, core, None, core.rank, full_column_rank=True, full_row_rank=m == n)


def _complete(Q: Tensor, R: Tensor, rtol: Tolerance, atol: Tolerance) -> Orthogonal:
    """The decomposition of A = Q R with the ranks that a pivoted QR of R reveals."""
    m, n = Q.shape[-2:]
    range_basis, diagonal = _pivoted_qr(R)
    threshold = rank_threshold(diagonal[..., 0], Q.shape, rtol, atol)
    rank = (diagonal > threshold.unsqueeze(-1)).sum(-1)
    largest, smallest = int(rank.max()), int(rank.min())
    kept = (torch.arange(largest, device=rank.device) < rank.unsqueeze(-1)).to(Q.dtype)
    basis = range_basis[..., :largest] * kept.unsqueeze(-2)
    V, T = torch.linalg.qr(R.mH @ basis)
    return Orthogonal(
        Q @ basis,
        Triangular(T + torch.diag_embed(1 - kept), Structure.UPPER).adjoint,
        V * kept.unsqueeze(-2),
        rank,
        full_column_rank=smallest == n,
        full_row_rank=smallest == m,
    )


def _proves_full_rank(R: Tensor, shape: torch.Size, rtol: Tolerance, atol: Tolerance) -> bool:
    """Whether σ_n ≥ 1/‖R⁻¹‖_F is above the threshold for every matrix, σ₁ taken as ‖R‖_F."""
    if R.numel() == 0:
        return True
    smallest = torch.linalg.matrix_norm(Triangular(R, Structure.UPPER).dense()).reciprocal()
    threshold = rank_threshold(torch.linalg.matrix_norm(R), shape, rtol, atol)
    return bool((smallest > threshold).all())


def _pivoted_qr(R: Tensor) -> tuple[Tensor, Tensor]:
    """Q and the moduli of the diagonal of a QR of each n×n matrix with column pivoting."""
    import scipy.linalg  # takes longer to import than this package, and few matrices come here

    if not bool(torch.isfinite(R).all()):
        raise LinAlgError("the matrix has entries that are not finite")
    matrices = R.detach().cpu().numpy().reshape(-1, *R.shape[-2:])
    bases = np.empty_like(matrices)
    diagonals = np.empty(matrices.shape[:-1], dtype=matrices.real.dtype)
    for i, matrix in enumerate(matrices):
        bases[i], triangle, _ = scipy.linalg.qr(matrix, pivoting=True, check_finite=False)
        diagonals[i] = np.abs(np.diagonal(triangle))
    return (
        torch.from_numpy(bases).to(R.device).reshape(R.shape),
        torch.from_numpy(diagonals).to(R.device).reshape(R.shape[:-1]),
    )
