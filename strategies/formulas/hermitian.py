"""A matrix that is taken for Hermitian, of which the lower triangle alone is read."""

from torch import Tensor

from strategies.formulas.values import with_values


def mirrored_values(A: Tensor) -> Tensor:
    """The lower triangle mirrored: a Hermitian matrix, constant.

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
