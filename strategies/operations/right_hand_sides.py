"""Batches of right-hand sides beside batches of matrices, as PyTorch broadcasts them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from strategies.autograd.choice import are_matrices, are_of_kind
from strategies.autograd.rule import Gradients, Tensors
from strategies.autograd.tracing import has_transforms
from strategies.autograd.transforms import Dims, over_equal_batches


def fit(A: Tensor, B: Tensor, left: bool) -> bool:
    """Whether B is a batch of matrices of right-hand sides that go with square A, on its left or right.

    Example:
        >>> import torch
        >>> A = torch.eye(3)
        >>> fit(A, torch.ones(5, 3, 2), True), fit(A, torch.ones(2, 3), True)
        (True, False)
    """
    if not (are_matrices(A, square=True) and are_of_kind(A, B) and B.ndim > 1):
        return False
    return B.shape[-2 if left else -1] == A.shape[-1] and _have_batches_that_fit(A, B)


def fit_rows(A: Tensor, B: Tensor) -> bool:
    """Whether B has the rows of A: vectors, or matrices in a batch of which each size is that of A or 1.

    Example:
        >>> import torch
        >>> A = torch.ones(2, 3, 2)
        >>> fit_rows(A, torch.ones(2, 3)), fit_rows(A, torch.ones(3, 4))
        (True, False)
    """
    if B.ndim < A.ndim:
        return B.shape == A.shape[:-1]
    return A.ndim == B.ndim and A.shape[-2] == B.shape[-2] and _have_batches_that_fit(A, B)


def _have_batches_that_fit(A: Tensor, B: Tensor) -> bool:
    """Whether the batches of two matrices can be broadcast."""
    if A.ndim == B.ndim == 2:
        return True
    ndim = min(A.ndim, B.ndim)  # strict, as Dynamo of PyTorch 2.9 takes every zip for
    pairs = zip(A.shape[-ndim:-2], B.shape[-ndim:-2], strict=True)
    return all(one == other or 1 in (one, other) for one, other in pairs)


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a vector, or a batch of vectors, beside A.

    Example:
        >>> import torch
        >>> is_vector(torch.ones(3, 3, 3), torch.ones(3, 3)), is_vector(torch.eye(3), torch.eye(3))
        (True, False)
    """
    return B.ndim == 1 or B.shape == A.shape[:-1]


def as_columns(vectors: Gradients) -> Any:
    """Vectors as matrices of one column; None as it is.

    Example:
        >>> import torch
        >>> [column.shape for column in as_columns((torch.ones(3),))]
        [torch.Size([3, 1])]
    """
    return tuple(None if each is None else each.unsqueeze(-1) for each in vectors)


def as_vectors(columns: Gradients) -> Any:
    """The inverse of `as_columns`."""
    return tuple(None if each is None else each.squeeze(-1) for each in columns)


def folded(A: Tensor, B: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Right-hand sides in the batch of A, and what makes of their solutions those that were asked for.

    Where one matrix has several right-hand sides, they are its columns.

    Example:
        >>> import torch
        >>> columns, restored = folded(torch.ones(5, 1, 3, 3), torch.ones(2, 3, 4))
        >>> columns.shape, restored(columns).shape
        (torch.Size([5, 1, 3, 8]), torch.Size([5, 2, 3, 4]))
    """
    own, (n, k) = A.shape[:-2], B.shape[-2:]
    if own == B.shape[:-2]:
        return B, lambda X: X
    batch = _broadcast(own, B.shape[:-2])
    if own == batch:
        columns = B.expand(*batch, n, k)
        # Kernels take one stride for all dimensions of a batch, to which a vmap adds one.
        has_more = len(batch) > 1 or has_transforms()
        return columns.contiguous() if has_more else columns, lambda X: X
    if math.prod(own) == 1:  # the same with less to work out
        columns = B.movedim(-2, 0).reshape(*own, n, math.prod(batch) * k)
        return columns, lambda X: X.reshape(X.shape[-2], *batch, k).movedim(0, -2)
    count = len(batch)
    of_A = (1,) * (count - len(own)) + tuple(own)
    kept = [i for i in range(count) if of_A[i] != 1]
    repeated = [i for i in range(count) if of_A[i] == 1]
    order = [*kept, count, *repeated, count + 1]
    columns = B.expand(*batch, n, k).permute(order)

    def restored(X: Tensor) -> Tensor:
        sizes = (*batch, X.shape[-2], k)
        return X.reshape([sizes[i] for i in order]).permute([*map(order.index, range(count + 2))])

    return columns.reshape(*own, n, math.prod([batch[i] for i in repeated]) * k), restored


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """The shape of batches that can be broadcast. PyTorch takes as long for it as to solve."""
    missing = len(one) - len(other)
    one, other = [*(1,) * -missing, *one], [*(1,) * missing, *other]
    return tuple([b if a == 1 else a for a, b in zip(one, other, strict=True)])


def over_columns(
    compute: Callable[..., Tensors], size: int, tensors: Sequence[Tensor], dims: Dims
) -> tuple[Sequence[Tensor], Dims]:
    """`vmap` of solutions: where it does not map the matrix, what it maps are more right-hand sides.

    As `strategies.autograd.transforms.OverBatch`.
    """
    if dims[0] is not None:
        return over_equal_batches(compute, size, tensors, dims)
    (A, B), (_, dim) = tensors, dims
    columns, restored = folded(A, B.movedim(dim or 0, 0))
    X, *others = compute(A, columns)
    return (restored(X), *others), (0, *[None] * len(others))


def for_each_matrix(
    solve: Callable[..., Tensor], A: Tensor, B: Tensor, *of_matrix: Tensor
) -> Tensor:
    """The solutions for batches that are broadcast, by a function for batches alike.

    That function takes A, (..., n, n), B, (..., n, k), and vectors that belong to A, (..., n).

    Example:
        >>> import torch
        >>> for_each_matrix(torch.linalg.solve, torch.eye(2), torch.ones(5, 2, 3)).shape
        torch.Size([5, 2, 3])
    """
    columns, restored = folded(A, B)
    return restored(solve(A, columns, *of_matrix))
