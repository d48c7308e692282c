"""A matrix less its value: zero, and there for its derivatives."""

from torch import Tensor

__all__ = ["differential"]


def differential(matrix: Tensor) -> Tensor:
    """Zero, with the derivatives of a matrix, but for entries that are not finite.

    Example:
        >>> import torch
        >>> A = torch.tensor([[2.0, torch.nan]], requires_grad=True)
        >>> differential(A).sum().backward()
        >>> A.grad
        tensor([[1., 0.]])
    """
    at = matrix.detach()
    return (matrix - at).masked_fill(~at.isfinite(), 0)
