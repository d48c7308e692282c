"""The leading rows and columns of a matrix, which is itself where it has no more.

A slice of all is an alias, for which `torch.autograd.grad(is_grads_batched=True)` has no rule, and the
backward of `Tensor.narrow` copies.
"""

from torch import Tensor


def first_rows(matrix: Tensor, k: int) -> Tensor:
    """The first k rows."""
    return matrix if matrix.shape[-2] == k else matrix.narrow(-2, 0, k)


def first_columns(matrix: Tensor, k: int) -> Tensor:
    """The first k columns."""
    return matrix if matrix.shape[-1] == k else matrix.narrow(-1, 0, k)


def leading_block(matrix: Tensor, k: int) -> Tensor:
    """The first k rows and columns."""
    return first_columns(first_rows(matrix, k), k)
