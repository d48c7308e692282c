"""Random matrices with prescribed singular values or an exact rank: the gallery's raw material."""

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


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
    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex

    @property
    def roundoff(self) -> float:
        """The dtype's unit roundoff."""
        return torch.finfo(self.dtype).eps / 2

    def reshaped(self, shape: tuple[int, int]) -> "Request":
        """Ask the same for another shape."""
        return replace(self, shape=shape)

    def random(self, stream: int) -> np.random.Generator:
        """Return a generator; streams are independent of each other."""
        return np.random.default_rng([self.seed, stream])


def with_singular_values(request: Request, values: NDArray[np.float64]) -> Array:
    """Return U diag(values) Vᴴ with Haar-distributed singular vectors, rounded once to double."""
    m, n = request.shape
    left, right = _orthonormal(request, m, 0), _orthonormal(request, n, 1)
    product: Array = (left * values) @ right.conj().swapaxes(-1, -2)
    return product


def with_exact_rank(request: Request, rank: int) -> Array:
    """Return a matrix of exactly this rank whose entries are exact in every dtype.

    Entries are integers below about 20·rank times powers of two between 1/4 and 4.
    """
    m, n = request.shape
    rng = request.random(2)
    left = _dominant_on_top(request, rng, m, rank)
    right = _dominant_on_top(request, rng, n, rank).swapaxes(-1, -2)
    row_scale = 2.0 ** rng.integers(-1, 2, (*request.batch, m, 1))
    column_scale = 2.0 ** rng.integers(-1, 2, (*request.batch, 1, n))
    matrix: Array = row_scale * (left @ right) * column_scale
    order = np.argsort(rng.random(matrix.shape[:-1]), axis=-1)
    return np.asarray(np.take_along_axis(matrix, order[..., None], axis=-2))


def unitary_phases(request: Request, count: int) -> Array:
    """Return random exact phases, ±1 or also ±i, of shape (*batch, count)."""
    return _phases(request, request.random(3), (*request.batch, count))


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
    if request.is_complex:
        gaussian = gaussian + 1j * rng.standard_normal(size)
    q, r = np.linalg.qr(gaussian)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    phases: Array = diagonal / np.abs(diagonal)
    return np.asarray(q * phases[..., None, :])


def _dominant_on_top(request: Request, rng: np.random.Generator, rows: int, rank: int) -> Array:
    """Return rows×rank: strictly diagonally dominant on top, random units and zeros below.

    A row of the top has at most three units beside its diagonal 4.
    """
    size = (*request.batch, rows, rank)
    entries = _phases(request, rng, size) * rng.integers(0, 2, size)
    top = np.zeros((rank, rank))
    for offset in (1, 2, 3):
        if offset < rank:
            top += np.roll(np.eye(rank), offset, axis=1)
    entries[..., :rank, :] = entries[..., :rank, :] * top
    entries[..., range(rank), range(rank)] = 4
    return entries


def _phases(request: Request, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    if request.is_complex:
        return np.array([1, 1j, -1, -1j])[rng.integers(0, 4, size)]
    return np.array([1.0, -1.0])[rng.integers(0, 2, size)]
