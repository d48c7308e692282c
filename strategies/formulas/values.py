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


def mirrored_values(A: Tensor) -> Tensor:
    """The lower triangle mirrored: a Hermitian matrix, constant, of which nothing else is read.

    Example:
        >>> import torch
        >>> mirrored_values(torch.tensor([[1.0, 9.0], [2.0, 3.0]])).tolist()
        [[1.0, 2.0], [2.0, 3.0]]
    """
    given = A.detach()
    lower, below = given.tril(), given.tril(-1)
    if A.is_complex():
        lower = below + given.diagonal(dim1=-2, dim2=-1).real.diag_embed()
    return lower + below.mH


def mirrored(A: Tensor) -> Tensor:
    """The same, with the derivatives of A, as in torch."""
    return with_values(A, mirrored_values(A))
