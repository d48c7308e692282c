"""Random matrices with prescribed singular values or an exact rank: the gallery's raw material."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from strategies.formulas.amplification import unit_roundoff

Array = NDArray[Any]

Built = tuple[Array, int, float | None]
"""A batch of matrices, their exact rank and the largest σ₁/σ_rank; None where it is to be measured."""


@dataclass(frozen=True)
class Request:
    """What a gallery matrix is asked to be: shape, dtype, batch and seed."""

    shape: tuple[int, int]
    dtype: torch.dtype
    batch: tuple[int, ...]
    seed: int

    def __post_init__(self) -> None:
        known = (torch.float32, torch.float64, torch.complex64, torch.complex128)
        if self.dtype not in known:
            raise ValueError(f"dtype must be one of {known}, got {self.dtype}")
        if min(*self.shape, *self.batch, 0) < 0:
            raise ValueError(f"sizes must not be negative, got {self.shape}, {self.batch}")

    @property
    def k(self) -> int:
        """The smaller dimension."""
        return min(self.shape)

    @property
    def roundoff(self) -> float:
        """The dtype's unit roundoff u."""
        return unit_roundoff(self.dtype)

    def random(self, stream: int) -> np.random.Generator:
        """Return a generator; streams are independent of each other."""
        return np.random.default_rng([self.seed, stream])


def with_singular_values(request: Request, values: NDArray[np.float64]) -> Array:
    """Return U diag(values) Vᴴ with Haar-distributed singular vectors, rounded once to double."""
    m, n = request.shape
    left, right = _orthonormal(request, m, 0), _orthonormal(request, n, 1)
    return (left * values) @ right.conj().swapaxes(-1, -2)


def with_condition(request: Request, condition: float) -> Built:
    """Return a matrix whose singular values fall geometrically from 1 to 1/condition."""
    condition = condition if request.k > 1 else 1.0
    values = np.geomspace(1, 1 / condition, request.k)
    return with_singular_values(request, values), request.k, condition


def with_exact_rank(request: Request, rank: int) -> Built:
    """Return a matrix of exactly this rank whose entries are exact in every dtype.

    Entries are integers below about 20·rank times powers of two between 1/4 and 4.
    """
    m, n = request.shape
    rng = request.random(2)
    left, right = integer_factors(request, rng, rank)
    row_scale = 2.0 ** rng.integers(-1, 2, (*request.batch, m, 1))
    column_scale = 2.0 ** rng.integers(-1, 2, (*request.batch, 1, n))
    return with_shuffled_rows(rng, row_scale * (left @ right) * column_scale), rank, None


def with_shuffled_rows(rng: np.random.Generator, matrix: Array) -> Array:
    """Return the rows of each matrix in random order."""
    order = np.argsort(rng.random(matrix.shape[:-1]), axis=-1)
    return np.take_along_axis(matrix, order[..., None], axis=-2)


def in_corner(request: Request, part: Array) -> Array:
    """Return a matrix that begins with this part and is zero elsewhere."""
    matrix = np.zeros((*request.batch, *request.shape), part.dtype)
    matrix[..., : part.shape[-2], : part.shape[-1]] = part
    return matrix


def phases(request: Request, rng: np.random.Generator, *size: int) -> Array:
    """Return random exact phases, ±1 or also ±i, of shape (*batch, *size)."""
    units = np.array([1, 1j, -1, -1j] if request.dtype.is_complex else [1.0, -1.0])
    return units[rng.integers(0, len(units), (*request.batch, *size))]


def measured_condition(matrix: Array, rank: int) -> float:
    """Return σ₁/σ_rank from singular values, the largest of the batch."""
    if rank == 0 or matrix.size == 0:
        return 1.0
    values = np.linalg.svd(matrix, compute_uv=False)
    return float((values[..., 0] / values[..., rank - 1]).max())


def _orthonormal(request: Request, rows: int, stream: int) -> Array:
    """Return rows×k with orthonormal columns, Haar-distributed.

    QR of a Gaussian matrix, R's diagonal made positive (Mezzadri 2007, *How to generate random
    matrices from the classical compact groups*).
    """
    rng = request.random(stream)
    size = (*request.batch, rows, request.k)
    gaussian: Array = rng.standard_normal(size)
    if request.dtype.is_complex:
        gaussian = gaussian + 1j * rng.standard_normal(size)
    q, r = np.linalg.qr(gaussian)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)[..., None, :]
    return q * (diagonal / np.abs(diagonal))


def integer_factors(request: Request, rng: np.random.Generator, rank: int) -> tuple[Array, Array]:
    """Return C, m×rank, and F, rank×n, with leading blocks that are certainly nonsingular."""
    left, right = (_dominant_on_top(request, rng, rows, rank) for rows in request.shape)
    return left, right.swapaxes(-1, -2)


def _dominant_on_top(request: Request, rng: np.random.Generator, rows: int, rank: int) -> Array:
    """Return rows×rank: strictly diagonally dominant on top, random units and zeros below.

    A row of the top has at most three units beside its diagonal 4.
    """
    entries = phases(request, rng, rows, rank)
    entries *= rng.integers(0, 2, entries.shape)
    top = np.zeros((rank, rank))
    for offset in range(1, min(rank, 4)):
        top += np.roll(np.eye(rank), offset, axis=1)
    entries[..., :rank, :] *= top
    entries[..., range(rank), range(rank)] = 4
    return entries
