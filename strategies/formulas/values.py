"""Values of one tensor with the derivatives of another."""

from torch import Tensor


def with_values(tensor: Tensor, values: Tensor) -> Tensor:
    """A copy of a tensor, derivatives included, that has other values.

    A sum with a constant would do, were it not slow in forward mode, where PyTorch adds a tensor with a
    tangent and one without by way of a kernel in Python.

    Example:
        >>> import torch
        >>> A = torch.tensor([2.0], requires_grad=True)
        >>> product = with_values(3 * A, torch.tensor([5.0]))
        >>> product.backward()
        >>> product.item(), A.grad.item()
        (5.0, 3.0)
    """
    result = tensor.clone()
    result.detach().copy_(values.detach())
    return result
