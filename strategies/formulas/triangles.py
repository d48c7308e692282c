"""Triangles of products, of which nothing else is formed.

The gradient of a triangular matrix, or of packed LU factors, is the triangle of a product of rank k. To
multiply first and cut off then takes three arrays of n×n numbers and twice the arithmetic.
"""

import math

import torch
from torch import Tensor

Product = tuple[Tensor, Tensor]

_BLOCK = 128
"""Rows that are written together: the other triangle is formed in as many rows and columns."""


def triangle_of_product(
    like: Tensor, left: Tensor, right: Tensor, *, upper: bool, strictly: bool = False
) -> Tensor:
    """A triangle of `left @ right`, zero elsewhere.

    The result has the shape, dtype and strides of `like`; strictly, no diagonal.

    Example:
        >>> one = torch.ones(2, 2)
        >>> triangle_of_product(one, one, one, upper=True).tolist()
        [[2.0, 2.0], [0.0, 2.0]]
    """
    product = left, right
    lower_product, upper_product = (None, product) if upper else (product, None)
    return _written(like, lower_product, upper_product, upper is not strictly)


def packed_product(like: Tensor, lower: Product, upper: Product) -> Tensor:
    """The strict lower triangle of one product, and the rest of another, as LU factors are packed.

    A product is given as its factors. The result has the shape, dtype and strides of `like`.

    Example:
        >>> one, two = torch.ones(2, 2), 2 * torch.ones(2, 2)
        >>> packed_product(one, (one, one), (one, two)).tolist()
        [[4.0, 4.0], [2.0, 4.0]]
    """
    return _written(like, lower, upper, True)


def _written(
    like: Tensor, lower: Product | None, upper: Product | None, diagonal_is_upper: bool
) -> Tensor:
    """Both triangles, block of rows by block of rows; None is zero."""
    if like.stride(-2) < like.stride(-1):
        # The rows of the transpose, whose triangles are the other ones.
        lower, upper = (each and (each[1].mT, each[0].mT) for each in (upper, lower))
        return _written(like.mT, lower, upper, not diagonal_is_upper).mT
    *batch, _, n = like.shape
    out, product_of = like.new_empty(n, n), torch.mm
    if batch:
        out, product_of = like.new_empty(math.prod(batch), n, n), torch.bmm
        flat = (
            (each and (each[0].flatten(0, -3), each[1].flatten(0, -3))) for each in (lower, upper)
        )
        lower, upper = flat

    def multiply(product: Product | None, rows: slice, columns: slice, out: Tensor) -> Tensor:
        if product is None:
            return out.zero_()
        left, right = product
        return product_of(left[..., rows, :], right[..., columns], out=out)

    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        rows, block = slice(start, stop), out[..., start:stop, start:stop]
        if start > 0:
            multiply(lower, rows, slice(0, start), out[..., rows, :start])
        if stop < n:
            multiply(upper, rows, slice(stop, n), out[..., rows, stop:])
        if diagonal_is_upper:
            multiply(upper, rows, rows, block).triu_()
            if lower is not None:
                block += multiply(lower, rows, rows, torch.empty_like(block)).tril_(-1)
        else:
            multiply(lower, rows, rows, block).tril_()
            if upper is not None:
                block += multiply(upper, rows, rows, torch.empty_like(block)).triu_(1)
    return out.view(like.shape)
