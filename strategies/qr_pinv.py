"""A complete orthogonal decomposition from a rank-revealing QR, for any rank."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.factors import Orthogonal, Triangular
from strategies.interface import Strategy, Tolerance, rank_threshold
from strategies.pseudo_inverse import PseudoInverse, Structure

__all__ = ["QRPinv"]


class QRPinv(Strategy):
    """A = U Tᴴ Vᴴ with orthonormal U, V and triangular T, from unpivoted QRs only.

    PyTorch has no pivoted QR; mixing the columns by a Gaussian matrix first makes an unpivoted one
    rank-revealing with probability one (Demmel, Dumitriu & Holtz, "Fast linear algebra is stable",
    Numer. Math. 108 (2007), section 5, randomized URV), on every device, batched and complex. The
    mix is drawn from a fixed seed. Matrices of full rank keep the plain QR of the matrix itself.

    The cut is a rank decision at noise level. A tolerance far above it drops what an SVD would drop
    only approximately.

    Example:
        >>> import torch, strategies
        >>> F = strategies.get("qr_pinv").factor(torch.ones(3, 2))
        >>> F.rank, F.dense()[0, 0].round(decimals=4)
        (tensor(1), tensor(0.1667))
    """

    name = "qr_pinv"
    summary = "complete orthogonal decomposition from a randomized rank-revealing QR; solves"
    requires_full_rank = False

    def factor(
        self,
        matrix: Tensor,
        structure: Structure = Structure.GENERAL,
        *,
        rtol: Tolerance = None,
        atol: Tolerance = None,
    ) -> PseudoInverse:
        m, n = matrix.shape[-2:]
        if m < n:
            return self.factor(matrix.mH, rtol=rtol, atol=atol).adjoint
        Q, R = torch.linalg.qr(structure.dense(matrix))
        range_basis, mixed = torch.linalg.qr(R @ _gaussian(n, matrix))
        diagonal = mixed.diagonal(dim1=-2, dim2=-1).abs()
        if n == 0:
            rank = torch.zeros(matrix.shape[:-2], dtype=torch.int64, device=matrix.device)
        else:
            threshold = rank_threshold(diagonal.amax(-1), matrix.shape, rtol, atol)
            rank = (diagonal > threshold.unsqueeze(-1)).sum(-1)
        largest, smallest = (int(rank.max()), int(rank.min())) if rank.numel() else (n, n)
        if smallest == n:
            core = Triangular(R, Structure.UPPER)
            return Orthogonal(Q, core, None, rank, full_column_rank=True, full_row_rank=m == n)
        kept = (torch.arange(largest, device=rank.device) < rank.unsqueeze(-1)).to(matrix.dtype)
        basis = range_basis[..., :largest] * kept.unsqueeze(-2)
        V, T = torch.linalg.qr(R.mH @ basis)
        T = T + torch.diag_embed(1 - kept)
        return Orthogonal(
            Q @ basis,
            Triangular(T, Structure.UPPER).adjoint,
            V * kept.unsqueeze(-2),
            rank,
            full_column_rank=False,
            full_row_rank=False,
        )


def _gaussian(n: int, like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, n, generator=generator, dtype=like.dtype).to(like.device)
