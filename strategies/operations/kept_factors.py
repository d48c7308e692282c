"""The factors that kernels keep for the backward, as a `PseudoInverse`."""

from collections.abc import Callable

import torch
from torch import Tensor

from strategies.autograd.fast_path_node import Computed
from strategies.factors import LUFactors, Orthogonal, Triangular
from strategies.factors.orthogonal import truncated
from strategies.factors.pseudo_inverse import PseudoInverse, Structure


def of_lu(LU: Tensor, pivots: Tensor) -> PseudoInverse:
    """A⁻¹ from LU by columns, and pivots."""
    return LUFactors(LU.mT, pivots)


def of_any_rank(U: Tensor, Vh: Tensor, core: Tensor, rank: Tensor) -> PseudoInverse:
    """A⁺ of A = U C Vᴴ of such a rank, U and Vᴴ by columns.

    C is the diagonal of these singular values, or the triangle of a complete orthogonal decomposition by
    columns: the upper one of wide A, and the adjoint of an upper one of others.

    Example:
        >>> one = torch.ones(1, 1)
        >>> of_any_rank(one, one, torch.tensor([2.0]), torch.tensor(1)).dense()
        tensor([[0.5000]])
    """
    m, n = U.shape[-1], Vh.shape[-2]
    if core.ndim < U.ndim:
        counts = torch.arange(core.shape[-1]) < rank.unsqueeze(-1)
        return truncated(U.mT, core, Vh.conj(), counts)
    triangle = Triangular(core.mT, Structure.UPPER)
    return Orthogonal(
        U.mT,
        triangle if m < n else triangle.adjoint,
        Vh.conj(),
        rank,
        full_column_rank=bool((rank == n).all()),
        full_row_rank=bool((rank == m).all()),
    )


def with_full_ranks(
    tangents: Tensor,
    computed: Computed,
    rank: Tensor,
    jvp: Callable[[PseudoInverse, Tensor], Tensor],
) -> Tensor:
    """Tangents by `of_any_rank`, with those of matrices of full rank by factors without a basis of rows.

    Such a basis mixes columns of unlike length, which R alone keeps apart.

    Args:
        tangents: (..., n, k); overwritten.
        computed: from what.
        rank: of each matrix, (...).
        jvp: the tangents of some matrices, from their pseudo-inverse and which they are, bool (...).
    """
    full = rank == min(computed.inputs[0].shape[-2:])
    if bool(full.any()):
        tangents[full] = jvp(computed.factored(full), full)
    return tangents
