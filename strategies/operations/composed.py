"""Functions that are other operations, and shapes, or names that these have in `torch`.

Calls that PyTorch refuses are left to it, whose errors say why.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.overrides import is_tensor_like

from strategies.autograd.choice import StrategyChoice, are_matrices, are_of_kind
from strategies.operations.det import slogdet
from strategies.operations.inv import inv
from strategies.operations.pinv import pinv
from strategies.operations.solve import solve
from strategies.operations.traceable import takes_out

__all__ = ["inverse", "logdet", "matrix_power", "pinverse", "tensorinv", "tensorsolve"]

RECORDS = ()


@takes_out
def logdet(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """The logarithm of each determinant.

    As `torch.logdet`; torch.linalg has no function of that name.

    Args:
        A: (..., n, n).
        strategy: as in `slogdet`.

    Returns:
        log det A, (...): NaN where a real determinant is negative, and −∞ where it is zero.

    Raises:
        torch.linalg.LinAlgError: in the backward, where a matrix is singular.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> logdet(torch.eye(2) * torch.e)
        tensor(2.)
    """
    if not are_matrices(A, square=True):
        return torch.logdet(A)
    sign, logabsdet = slogdet(A, strategy=strategy)
    if sign.is_complex():
        return sign.log() + logabsdet
    return torch.where(sign == -1, torch.nan, logabsdet)


@takes_out
def matrix_power(A: Tensor, n: int, *, strategy: StrategyChoice = "auto") -> Tensor:
    """The n-th power of each matrix of a batch, for negative n that of its inverse.

    As `torch.linalg.matrix_power`.

    Args:
        A: (..., m, m).
        n: the exponent.
        strategy: as in `inv`; of no effect where n is not negative.

    Returns:
        Aⁿ, (..., m, m).

    Raises:
        torch.linalg.LinAlgError: n is negative, and a matrix is singular.
        RuntimeError: A is not a batch of square float matrices.

    Example:
        >>> matrix_power(torch.tensor([[2.0]]), -3)
        tensor([[0.1250]])
    """
    if n >= 0 or not are_matrices(A, square=True):
        return torch.linalg.matrix_power(A, n)
    return torch.linalg.matrix_power(inv(A, strategy=strategy), -n)


@takes_out
def tensorinv(A: Tensor, ind: int = 2, *, strategy: StrategyChoice = "auto") -> Tensor:
    """The inverse of a tensor for `torch.tensordot`.

    As `torch.linalg.tensorinv`.

    Args:
        A: the product of its first `ind` sizes is that of the others.
        ind: the number of dimensions that count as rows.
        strategy: as in `inv`.

    Returns:
        Its last dimensions have the sizes of the first of A, and the other way round.

    Raises:
        torch.linalg.LinAlgError: A is singular.
        RuntimeError: the products of sizes differ, or `ind` is no number of dimensions of A.

    Example:
        >>> tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
        torch.Size([6, 2, 3])
    """
    if not is_tensor_like(A):
        return torch.linalg.tensorinv(A, ind)
    rows, columns = A.shape[: max(ind, 0)], A.shape[max(ind, 0) :]
    size = math.prod(rows)
    matrix = A.reshape(size, -1) if size else A
    if not (0 < ind <= A.ndim and are_matrices(matrix) and size == math.prod(columns)):
        return torch.linalg.tensorinv(A, ind)
    return inv(matrix, strategy=strategy).reshape(*columns, *rows)


@takes_out
def tensorsolve(
    A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, strategy: StrategyChoice = "auto"
) -> Tensor:
    """The X of which `torch.tensordot(A, X, X.ndim)` is B.

    As `torch.linalg.tensorsolve`.

    Args:
        A: the product of the first sizes, as many as B has, is that of the others.
        B: of the first sizes of A.
        dims: dimensions of A that are moved to its end first.
        strategy: as in `solve`.

    Returns:
        X, of the last sizes of A.

    Raises:
        torch.linalg.LinAlgError: A is singular.
        RuntimeError: the sizes do not fit.

    Example:
        >>> tensorsolve(2 * torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3))
        tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    if not (is_tensor_like(A) and is_tensor_like(B)):
        return torch.linalg.tensorsolve(A, B)
    moved = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    columns = moved.shape[B.ndim :]
    size = math.prod(columns)
    if not (size and size == B.numel() and moved.numel() == size**2 and are_of_kind(A, B)):
        return torch.linalg.tensorsolve(A, B, None if dims is None else tuple(dims))
    X = solve(moved.reshape(size, size), B.reshape(size), strategy=strategy)
    return X.reshape(columns)


@takes_out
def inverse(A: Tensor, *, strategy: StrategyChoice = "auto") -> Tensor:
    """`inv`, as `torch.inverse` is `torch.linalg.inv`.

    Args:
        A: (..., n, n).
        strategy: as in `inv`.

    Returns:
        A⁻¹, (..., n, n).

    Raises:
        torch.linalg.LinAlgError: as in `inv`.
        RuntimeError: as in `inv`.

    Example:
        >>> inverse(torch.tensor([[4.0]]))
        tensor([[0.2500]])
    """
    return inv(A, strategy=strategy)


def pinverse(A: Tensor, rcond: float = 1e-15, *, strategy: StrategyChoice = "auto") -> Tensor:
    """`pinv` with the tolerance of `torch.pinverse`.

    Args:
        A: (..., m, n).
        rcond: singular values up to rcond·σ₁ count as zero.
        strategy: as in `pinv`.

    Returns:
        A⁺, (..., n, m).

    Raises:
        torch.linalg.LinAlgError: as in `pinv`.
        RuntimeError: as in `pinv`.

    Example:
        >>> pinverse(torch.tensor([[3.0], [4.0]])).round(decimals=4)
        tensor([[0.1200, 0.1600]])
    """
    return pinv(A, rtol=rcond, strategy=strategy)
