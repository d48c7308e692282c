"""A matrix less its value: zero, and there for its derivatives."""

from torch import Tensor

from strategies.formulas.sums import add


def differential(matrix: Tensor) -> Tensor:
    """Zero, with the derivatives of a matrix.

    Example:
        >>> import torch
        >>> A = torch.tensor([2.0], requires_grad=True)
        >>> (3 * differential(A)).backward()
        >>> A.grad
        tensor([3.])
    """
    return add(matrix, -matrix.detach())


def finite_differential(matrix: Tensor) -> Tensor:
    """Likewise, and constant in entries that are not finite."""
    return differential(matrix).masked_fill(~matrix.detach().isfinite(), 0)
