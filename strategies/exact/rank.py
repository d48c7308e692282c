"""The exact rank of a matrix of floating-point numbers, and where it is attained.

A float is an integer times a power of two, so a matrix of floats has an image modulo any odd
prime. Row reduction there is exact and indifferent to conditioning and scale. The rank of the
image never exceeds the true rank and is smaller only if the prime divides a minor, which for a
prime near 2³¹ has odds of about one in 10⁹; whoever relies on it certifies the rest with balls.
"""

from typing import Any, TypeAlias

import numpy as np
from flint import nmod_mat
from numpy.typing import NDArray

Profile: TypeAlias = tuple[list[int], list[int]]
"""Rows and columns that meet in a nonsingular matrix of the full matrix's rank."""

_PRIME = 2**31 - 19
# _PRIME is 5 modulo 8, so 2 is no square and this is a square root of −1: i has an image too.
_IMAGINARY_UNIT = pow(2, (_PRIME - 1) // 4, _PRIME)


def rank_profile(array: NDArray[Any]) -> Profile:
    """Find a profile of a finite m×n float array, real or complex."""
    image = _image(array)
    columns = _pivot_columns(image)
    return _pivot_columns(image[:, columns].T), columns


def _image(array: NDArray[Any]) -> NDArray[np.int64]:
    if np.iscomplexobj(array):
        real, imaginary = _image(array.real), _image(array.imag)
        return (real + imaginary * _IMAGINARY_UNIT) % _PRIME
    fraction, exponent = np.frexp(array.astype(np.float64))
    integers = np.ldexp(fraction, 53).astype(np.int64)
    distinct, which = np.unique(exponent, return_inverse=True)
    powers = np.array([pow(2, int(e) - 53, _PRIME) for e in distinct], dtype=np.int64)
    return integers % _PRIME * powers[which].reshape(array.shape) % _PRIME


def _pivot_columns(image: NDArray[np.int64]) -> list[int]:
    rows, columns = image.shape
    reduced, rank = nmod_mat(rows, columns, image.ravel().tolist(), _PRIME).rref()
    return [
        next(column for column in range(row, columns) if int(reduced[row, column]))
        for row in range(rank)
    ]
