"""Parts and products of matrices, and replacements for some of a batch."""

import torch
from torch import Tensor


def first_rows(matrix: Tensor, k: int) -> Tensor:
    """The first k rows: the matrix itself where it has no more.

    A slice of all is an alias, for which `torch.autograd.grad(is_grads_batched=True)` has no rule, and the
    backward of `Tensor.narrow` copies.
    """
    return matrix if matrix.shape[-2] == k else matrix.narrow(-2, 0, k)


def first_columns(matrix: Tensor, k: int) -> Tensor:
    """The first k columns, likewise."""
    return matrix if matrix.shape[-1] == k else matrix.narrow(-1, 0, k)


def leading_block(matrix: Tensor, k: int) -> Tensor:
    """The first k rows and columns, likewise."""
    return first_columns(first_rows(matrix, k), k)


def product_by_columns(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right`; that of single matrices with its columns one after the other.

    So are those of orthonormal bases from LAPACK, and of the gradients of `torch.linalg.pinv`. A
    result by rows beside a tall factor by columns, whose rows' entries are often a power of two
    apart, takes up to twice as long.

    Example:
        >>> product_by_columns(torch.ones(3, 2), torch.ones(2, 2)).stride()
        (1, 3)
    """
    if left.ndim > 2 or right.ndim > 2:
        return left @ right
    return (right.mT @ left.mT).mT


def identity_where(chosen: Tensor, matrices: Tensor) -> Tensor:
    """The matrices, (..., m, n), with an identity for those that are chosen, bool (...)."""
    m, n = matrices.shape[-2:]
    identity = torch.eye(m, n, dtype=matrices.dtype, device=matrices.device)
    return torch.where(chosen[..., None, None], identity, matrices)


def nan_where(chosen: Tensor, matrices: Tensor) -> Tensor:
    """The same with NaN: of a `vmap` nobody can look whether there are any."""
    return matrices.masked_fill(chosen[..., None, None], torch.nan)
