"""The factors that kernels keep for the backward, as a `PseudoInverse`."""

from __future__ import annotations

import torch
from torch import Tensor

from strategies.factors import LUFactors, Orthogonal, Triangular
from strategies.factors.orthogonal import truncated
from strategies.factors.pseudo_inverse import PseudoInverse, Structure, full_rank

__all__ = ["of_lu", "of_qr", "of_svd"]


def of_lu(LU: Tensor, pivots: Tensor) -> PseudoInverse:
    """A⁻¹ from LU by columns, and pivots."""
    return LUFactors(LU.mT, pivots)


def of_qr(Q: Tensor, R: Tensor) -> PseudoInverse:
    """A⁺ of tall A = Q R of full rank, both by columns.

    Example:
        >>> of_qr(torch.tensor([[0.6, 0.8]]), torch.tensor([[5.0]])).apply(torch.tensor([[3.0], [4.0]]))
        tensor([[1.]])
    """
    core = Triangular(R.mT, Structure.UPPER)
    return Orthogonal(Q.mT, core, None, full_rank(R), full_column_rank=True, full_row_rank=False)


def of_svd(U: Tensor, Vh: Tensor, values: Tensor, rank: Tensor) -> PseudoInverse:
    """A⁺ of A = U diag(s) Vᴴ, U and Vᴴ by columns, cut after so many singular values.

    Example:
        >>> one = torch.ones(1, 1)
        >>> of_svd(one, one, torch.tensor([2.0]), torch.tensor(1)).dense()
        tensor([[0.5000]])
    """
    counts = torch.arange(values.shape[-1]) < rank.unsqueeze(-1)
    return truncated(U.mT, values, Vh.conj(), counts)
