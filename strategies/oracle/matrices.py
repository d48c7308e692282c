"""Matrices, right-hand sides and cotangents of small integers and powers of two.

Sums and products are exact or rounded once, so that every machine makes the same bits. Nothing here
calls LAPACK.
"""

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import ctx
from numpy.typing import NDArray

from strategies.accuracy.evaluation import rounded
from strategies.exact.balls import exact

Array = NDArray[Any]

_SPARE = 12  # bits that small integers and their sums take, of the digits of a number

_MARGIN = 1.01  # by how much a pivot exceeds the other candidates


@dataclass(frozen=True)
class Source:
    """Random numbers of one field, in a dtype of 53 or 24 bits."""

    rng: np.random.Generator
    is_complex: bool
    digits: int

    def integers(self, *shape: int, most: int = 8) -> Array:
        """Small integers, or Gaussian ones."""
        entries = self.rng.integers(-most, most + 1, shape).astype(np.float64)
        if self.is_complex:
            return entries + 1j * self.rng.integers(-most, most + 1, shape)
        return entries

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        return int(self.rng.integers(low, max(low, high) + 1))


def product(*factors: Array) -> Array:
    """The product of matrices, rounded once."""
    with ctx.workprec(4096):
        return rounded(functools.reduce(operator.mul, map(exact, factors)))


def plain(source: Source, m: int, n: int) -> Array:
    """Quarters of integers."""
    return source.integers(m, n) / 4


def nearly_dependent(source: Source, m: int, n: int) -> Array:
    """A product of rank k − 1, and 2^−q times another matrix."""
    power = 2.0 ** -source.between(6, source.digits - _SPARE)
    return product_of_rank(source, m, n, min(m, n) - 1) + power * source.integers(m, n, most=4)


def graded_factors(source: Source, m: int, n: int) -> Array:
    """X D Y with powers of two in D: singular values far apart."""
    k = min(m, n)
    step = source.between(2, (source.digits - _SPARE) // max(k - 1, 1))
    scales = np.diag(np.exp2(-step * np.arange(k)))
    return product(source.integers(m, k, most=4), scales, source.integers(k, n, most=4))


def equal_singular_values(source: Source, m: int, n: int) -> Array:
    """A signed permutation, at times with [[1, 1], [1, −1]] in a corner: one singular value, repeated."""
    k = min(m, n)
    matrix = np.zeros((m, n), complex if source.is_complex else float)
    matrix[range(k), source.rng.permutation(k)] = source.rng.choice([-1.0, 1.0], k)
    if k > 1 and source.between(0, 1):
        matrix[:k, :k] = np.kron(np.eye(k), [[1, 1], [1, -1]])[:k, :k]
    return matrix * 2.0 ** source.between(-3, 3)


def growing_pivots(source: Source, m: int, n: int) -> Array:
    """Nearly Wilkinson's matrix: ones on the diagonal and in the last column, below nearly −1."""
    matrix = np.eye(m, n) - np.tril(np.ones((m, n)), -1) * (1 - 2.0**-6)
    matrix[:, -1] = 1
    return matrix.astype(complex if source.is_complex else float)


def product_of_rank(source: Source, m: int, n: int, rank: int) -> Array:
    """A product of integer factors with so many columns; that exactly, if they are independent."""
    return product(source.integers(m, rank, most=4), source.integers(rank, n, most=4))


def _powers(source: Source, m: int, n: int) -> Array:
    return np.exp2(source.rng.integers(-10, 11, (m, n)))


Recipe = Callable[[Source, int, int], Array]

PLAIN: Mapping[str, Recipe] = {"plain": plain}
HARD: Mapping[str, Recipe] = {
    "nearly dependent": nearly_dependent,
    "graded factors": graded_factors,
    "equal singular values": equal_singular_values,
    "growing pivots": growing_pivots,
}
GRADED: Mapping[str, Recipe] = {
    "graded rows": lambda source, m, n: _powers(source, m, 1) * plain(source, m, n),
    "graded columns": lambda source, m, n: plain(source, m, n) * _powers(source, 1, n),
}


def right_side(source: Source, matrix: Array, columns: int) -> tuple[str, Array]:
    """B: random, A X, or that with a small residual."""
    m, n = matrix.shape
    which = source.between(0, 2)
    if which == 0:
        return "B random", plain(source, m, columns)
    image = product(matrix, source.integers(n, columns, most=4))
    if which == 1:
        return "B = AX", image
    return "B near AX", image + 2.0**-10 * source.integers(m, columns)


def cotangent(source: Source, matrix: Array, shape: tuple[int, ...]) -> tuple[str, Array]:
    """G: random, one entry, or of a matrix with the rows of Aᴴ also AᴴA W."""
    which = source.between(0, 2)
    if which == 1 and len(shape) == 2:
        side = np.zeros(shape, complex if source.is_complex else float)
        side[source.between(0, shape[0] - 1), source.between(0, shape[1] - 1)] = 1
        return "G one entry", side
    if which == 2 and len(shape) == 2 and shape[0] == matrix.shape[1]:
        return "G = AᴴAW", product(matrix.conj().T, matrix, source.integers(*shape, most=4))
    return "G random", source.integers(*shape) / 4


def tangent(source: Source, matrix: Array) -> tuple[str, Array]:
    """Ȧ: random, or A X."""
    if source.between(0, 1):
        return "Ȧ random", plain(source, *matrix.shape)
    n = matrix.shape[1]
    return "Ȧ = AX", product(matrix, source.integers(n, n, most=4))


def tangent_at_rank(source: Source, matrix: Array) -> Array:
    """Ȧ = A X + Y A, which keeps the rank; of small integers it is exact."""
    m, n = matrix.shape
    right, left = source.integers(n, n, most=4), source.integers(m, m, most=4)
    return product(matrix, right) + product(left, matrix)


def clear_order(matrix: Array, rank: int) -> NDArray[np.int64] | None:
    """Where the pivoted rows come from, the first `rank` of them pivots; None if a choice is close.

    Of complex numbers some libraries compare moduli, others |Re| + |Im|: both have to agree.
    """
    rest = matrix.astype(np.result_type(matrix, np.float64))
    order = np.arange(len(matrix))
    for step in range(rank):
        column = rest[step:, step]
        choices = set()
        for sizes in (abs(column), abs(column.real) + abs(column.imag)):
            first = int(np.argmax(sizes))
            if sizes[first] <= _MARGIN * max(np.delete(sizes, first), default=0.0):
                return None
            choices.add(step + first)
        if len(choices) > 1 or not column.any():
            return None
        (pivot,) = choices
        for rows in (rest, order):
            rows[[step, pivot]] = rows[[pivot, step]]
        factors = rest[step + 1 :, step] / rest[step, step]
        rest[step + 1 :] -= np.outer(factors, rest[step])
    return order
