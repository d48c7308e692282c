"""A complete orthogonal decomposition from a rank-revealing QR, for any rank."""

import numpy as np
import torch
from torch import Tensor

from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import by_qr
from strategies.factors import Orthogonal, Reflected, Triangular
from strategies.factors.condition import frobenius_norms, smallest_of_R
from strategies.factors.householder import qr
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.factors.rank_guards import NOISE, noise_level, refuse_singular
from strategies.formulas.accuracy_classes import FACTORS_U_ORTHOGONALLY
from strategies.strategy import Strategy, Tolerance, rank_threshold

_CLEARLY = 4  # times a threshold: an estimated singular value above that is above the threshold


class QRPinv(Strategy):
    """A = U Tᴴ Vᴴ with orthonormal U, V and triangular T (Golub & Van Loan, section 5.4.7).

    A = Q R first. Where the smallest singular value of R is well above the tolerance that is all, and
    costs what `triangular_solve` costs; else a QR of the n×n R with column pivoting (LAPACK geqp3)
    reveals the rank r, and the rows that remain are compressed by another QR to T. PyTorch has no
    pivoted QR, so R visits the host there. A randomized URV would not have to, but misjudges the rank
    of about one small matrix in a thousand, for want of pivoting.

    What the pivoted QR reveals is used if it is certain: what it drops is at noise level, and ‖T⁻¹‖
    proves that nothing which is kept should be dropped. Else (near the tolerance, with a large one, and
    of matrices like Kahan's, whose pivots hide a small singular value) an SVD decides.

    A square matrix that is to be inverted is refused if it is singular: if its smallest singular value
    is at noise level and elimination finds a pivot that is exactly zero, as in torch.

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
        Q, R = qr(matrix)
        if _is_clearly_full(R, matrix, rtol, atol):
            return by_qr(Q, R)
        return _of_any_rank(matrix, Q, R, rtol, atol)

    def factor_triangular(self, matrix: Tensor, structure: Structure) -> PseudoInverse:
        if matrix.is_cuda:  # whose QR leaves the range where LAPACK scales
            return super().factor_triangular(matrix, structure)
        return by_qr(*qr(structure.dense(matrix)))

    def factor_square(self, matrix: Tensor) -> PseudoInverse:
        Q, R = qr(matrix)
        refuse_singular(smallest_of_R(R), matrix, self.name)
        return by_qr(Q, R)

    def lstsq_forward(
        self, matrix: Tensor, rhs: Tensor, *, rtol: Tolerance = None
    ) -> tuple[Tensor, PseudoInverse]:
        if not Reflected.pays(matrix, rhs):
            return NotImplemented
        reflected = Reflected.of(matrix)
        R = reflected.packed_R
        if _is_clearly_full(R, matrix, rtol, None):
            return reflected.apply(rhs), reflected
        inverse = _of_any_rank(matrix, reflected.basis(), R.triu(), rtol, None)
        return inverse.apply(rhs), inverse


def _is_clearly_full(R: Tensor, matrix: Tensor, rtol: Tolerance, atol: Tolerance) -> bool:
    """Whether no singular value is near the tolerance or noise, with ‖A‖_F for σ₁."""
    if matrix.numel() == 0:
        return True
    smallest, norms = smallest_of_R(R), frobenius_norms(matrix)
    level = noise_level(matrix)
    if rtol is None and atol is None and matrix.ndim == 2:
        return smallest.item() > level * norms.item()
    threshold = _CLEARLY * rank_threshold(norms, matrix.shape, rtol, atol)
    return bool((smallest > torch.maximum(threshold, level * norms)).all())


def _of_any_rank(
    matrix: Tensor, Q: Tensor, R: Tensor, rtol: Tolerance, atol: Tolerance
) -> PseudoInverse:
    m, n = matrix.shape[-2:]
    range_basis, triangle = _pivoted_qr(R)
    diagonal = triangle.diagonal(dim1=-2, dim2=-1).abs()
    norms = frobenius_norms(R)
    noise = max(m, n, NOISE) * torch.finfo(norms.dtype).eps * norms
    # σ₁ is between the first pivot and the norm.
    least = rank_threshold(diagonal[..., 0], matrix.shape, rtol, atol)
    most = rank_threshold(norms, matrix.shape, rtol, atol)
    rank = (diagonal > torch.minimum(noise, least).unsqueeze(-1)).sum(-1)
    largest, smallest = int(rank.max()), int(rank.min())
    columns = torch.arange(n, device=rank.device)
    is_kept = columns < rank.unsqueeze(-1)
    kept = is_kept[..., :largest].to(Q.dtype)
    basis = range_basis[..., :largest] * kept.unsqueeze(-2)
    V, T = qr(R.mH @ basis)
    T = T + torch.diag_embed((1 - kept) * torch.where(norms > 0, norms, 1).unsqueeze(-1))
    dropped = frobenius_norms(triangle * ~is_kept.unsqueeze(-1))
    # Where all pivots are dropped, nothing is kept that should not be.
    bound = frobenius_norms(Triangular(T, Structure.UPPER).dense()).reciprocal()
    is_certain = (dropped <= torch.minimum(noise, least)) & ((bound > most) | (rank == 0))
    if not bool(is_certain.all()):
        truncated = SVDTruncatedPinv().factor_tall(matrix, rtol=rtol, atol=atol)
        # Unlike an SVD, a QR is accurate column by column.
        return by_qr(Q, R) if truncated.full_column_rank else truncated
    return Orthogonal(
        Q @ basis,
        Triangular(T, Structure.UPPER).adjoint,
        V * kept.unsqueeze(-2),
        rank,
        full_column_rank=smallest == n,
        full_row_rank=smallest == m,
    )


def _pivoted_qr(R: Tensor) -> tuple[Tensor, Tensor]:
    """Q and the triangle of a QR of each n×n matrix with column pivoting."""
    import scipy.linalg  # takes longer to import than this package, and few matrices come here

    matrices = R.detach().cpu().numpy().reshape(-1, *R.shape[-2:])
    bases, triangles = np.empty_like(matrices), np.empty_like(matrices)
    for i, matrix in enumerate(matrices):
        bases[i], triangles[i], _ = scipy.linalg.qr(matrix, pivoting=True, check_finite=False)
    basis, triangle = (
        torch.from_numpy(each).to(R.device).reshape(R.shape) for each in (bases, triangles)
    )
    return basis, triangle
