"""Scaling by powers of two, which rounds nothing, and products that leave the range of the dtype."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

_IN_RANGE = 64
"""Mantissas, of one half to √2, whose product is in range."""

_OF_ZERO = -(2**20)
"""Stands for the exponent of zero: less than that of any number, or of any ratio of two."""


class Equilibrated(NamedTuple):
    """A = 2^rows · matrix · 2^columns, as diagonal matrices; exponents are int32, (..., n)."""

    matrix: Tensor  # with a largest entry in [1/2, 1) in each row and column that is not zero
    rows: Tensor
    columns: Tensor


def times_power_of_two(x: Tensor, exponents: Tensor) -> Tensor:
    """Numbers times 2^exponents, entry by entry: exact, but for over- and underflow; differentiable in x.

    Example:
        >>> times_power_of_two(torch.tensor([3.0, 2.0**-149]), torch.tensor([-1, 150])).tolist()
        [1.5, 2.0]
    """
    if x.is_complex():
        # A complex factor would make NaN of an infinite part times the other's zero.
        parts = torch.view_as_real(x.resolve_conj())
        return torch.view_as_complex(times_power_of_two(parts, exponents.unsqueeze(-1)))
    most = math.frexp(torch.finfo(x.dtype).max)[1] - 1
    # In two halves, since 2^1074, which the smallest number needs, is no number itself.
    half = exponents // 2
    for part in (half, exponents - half):
        x = x * torch.exp2(part.clamp(1 - most, most).to(x.dtype))
    return x


def _exponents(x: Tensor) -> Tensor:
    """Of the larger of real and imaginary part: int32, of the shape of x."""
    size = torch.maximum(x.real.abs(), x.imag.abs()) if x.is_complex() else x.abs()
    return torch.where(size > 0, torch.frexp(size)[1], _OF_ZERO)


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissas of about one, and exponents: x = mantissa · 2^exponent. Those of zero are zero."""
    exponents = _exponents(x)
    exponents = exponents.masked_fill(exponents == _OF_ZERO, 0)
    return times_power_of_two(x, -exponents), exponents


def product(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent of the product over the last dimension: (..., n) -> (...) both."""
    mantissas, exponents = split(x)
    total = exponents.sum(-1)
    while (count := mantissas.shape[-1]) > 1:
        padded = pad(mantissas, (0, -count % _IN_RANGE), value=1.0)
        groups = padded.reshape(*padded.shape[:-1], -(-count // _IN_RANGE), _IN_RANGE)
        mantissas, exponents = split(groups.prod(-1))
        total = total + exponents.sum(-1)
    return mantissas.prod(-1), total


def equilibrate(A: Tensor) -> Equilibrated:
    """Scale rows and columns of square matrices, (..., n, n), until their largest entries are alike.

    Example:
        >>> equilibrate(torch.tensor([[4.0, 0.5], [8.0, 0.75]])).matrix.tolist()
        [[0.25, 0.5], [0.5, 0.75]]
    """
    exponents = _exponents(A)
    if A.shape[-1] == 0:
        return Equilibrated(A, exponents.sum(-1), exponents.sum(-2))
    columns = exponents.amax(-2)
    columns = columns.masked_fill(columns == _OF_ZERO, 0)
    rows = (exponents - columns.unsqueeze(-2)).amax(-1)
    rows = rows.masked_fill(rows < _OF_ZERO // 2, 0)
    matrix = times_power_of_two(A, -(rows.unsqueeze(-1) + columns.unsqueeze(-2)))
    return Equilibrated(matrix, rows, columns)
