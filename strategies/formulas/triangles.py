"""Triangles of products, of which nothing else is formed.

The gradient of a triangular matrix, or of packed LU factors, is the triangle of a product of rank k. To
multiply first and cut off then takes three arrays of n×n numbers and twice the arithmetic.
"""

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
    result = like.new_empty(like.shape)
    if result.numel() == 0:
        return result
    count, n = result[..., 0, 0].numel(), result.shape[-1]
    out = result.view(count, n, n) if result.ndim > 2 else result
    by_columns = like.stride(-2) < like.stride(-1)
    if by_columns:  # the rows of the transpose, whose triangles are the other ones
        lower, upper = _transposed(upper), _transposed(lower)
        diagonal_is_upper = not diagonal_is_upper
    if result.ndim > 2:
        lower, upper = _flat(lower, count), _flat(upper, count)
    _write(out, lower, upper, diagonal_is_upper)
    return result.mT if by_columns else result


def _transposed(product: Product | None) -> Product | None:
    return None if product is None else (product[1].mT, product[0].mT)


def _flat(product: Product | None, count: int) -> Product | None:
    """With one batch dimension."""
    if product is None:
        return None
    left, right = product
    return left.reshape(count, *left.shape[-2:]), right.reshape(count, *right.shape[-2:])


def _write(
    out: Tensor, lower: Product | None, upper: Product | None, diagonal_is_upper: bool
) -> None:
    """Write the triangles, block of rows by block of rows; None is zero."""
    n = out.shape[-1]
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        rows, block = slice(start, stop), out[..., start:stop, start:stop]
        if start > 0:
            _multiply(lower, rows, slice(0, start), out[..., rows, :start])
        if stop < n:
            _multiply(upper, rows, slice(stop, n), out[..., rows, stop:])
        if diagonal_is_upper:
            _multiply(upper, rows, rows, block)
            block.triu_()
            if lower is not None:
                block += _multiply(lower, rows, rows, torch.empty_like(block)).tril_(-1)
        else:
            _multiply(lower, rows, rows, block)
            block.tril_()
            if upper is not None:
                block += _multiply(upper, rows, rows, torch.empty_like(block)).triu_(1)


def _multiply(product: Product | None, rows: slice, columns: slice, out: Tensor) -> Tensor:
    if product is None:
        return out.zero_()
    multiply = torch.mm if out.ndim == 2 else torch.bmm
    left, right = product
    return multiply(left[..., rows, :], right[..., columns], out=out)
