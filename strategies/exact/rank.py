"""The exact rank of a matrix of floating-point numbers, and where it is attained.

A float is an integer times a power of two, so a matrix of floats has an image modulo any odd
prime. Row reduction there is exact and indifferent to conditioning and scale. The rank of the
image never exceeds the true rank and is smaller only if the prime divides a minor, which for a
prime near 2³¹ has odds of about one in 10⁹; the larger rank of two primes counts. Whoever relies on
it certifies the rest with balls.
"""

from typing import Any

import numpy as np
from flint import nmod_mat
from numpy.typing import NDArray

Profile = tuple[list[int], list[int]]
"""Rows and columns that meet in a nonsingular matrix of the full matrix's rank."""

_PRIMES = 2**31 - 19, 2**31 - 99
# They are 5 modulo 8, so 2 is no square and 2^((p − 1)/4) a square root of −1: i has an image too.


def rank_profile(array: NDArray[Any]) -> Profile:
    """Find a profile of a finite m×n float array, real or complex."""
    found = []
    for prime in _PRIMES:
        image = _image(array, prime)
        columns = _pivot_columns(image, prime)
        found.append((_pivot_columns(image[:, columns].T, prime), columns))
    return max(found, key=lambda profile: len(profile[0]))


def _image(array: NDArray[Any], prime: int) -> NDArray[np.int64]:
    if np.iscomplexobj(array):
        real, imaginary = _image(array.real, prime), _image(array.imag, prime)
        return (real + imaginary * pow(2, (prime - 1) // 4, prime)) % prime
    fraction, exponent = np.frexp(array.astype(np.float64))
    integers = np.ldexp(fraction, 53).astype(np.int64)
    distinct, which = np.unique(exponent, return_inverse=True)
    powers = np.array([pow(2, int(e) - 53, prime) for e in distinct], dtype=np.int64)
    return integers % prime * powers[which].reshape(array.shape) % prime


def _pivot_columns(image: NDArray[np.int64], prime: int) -> list[int]:
    rows, columns = image.shape
    reduced, rank = nmod_mat(rows, columns, image.ravel().tolist(), prime).rref()
    return [next(j for j in range(i, columns) if int(reduced[i, j])) for i in range(rank)]
