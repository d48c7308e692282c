"""Test matrices by name: each seeded, with its rank and its condition number.

    >>> import torch
    >>> specimen = make("kahan", (4, 4), torch.float32)
    >>> specimen.rank, specimen.matrix.shape
    (4, torch.Size([4, 4]))

`strategies.accuracy.builders` says what each is for and where it comes from.
The condition number κ = σ₁/σ_r refers to the matrix before its entries are rounded to the dtype, which
moves σ_r by about u·σ₁, u being the unit roundoff. Every name takes every shape, from 0×0 up.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from strategies.accuracy import spectra
from strategies.accuracy.builders import BUILDERS
from strategies.accuracy.spectra import Array, Request

WELL_POSED = (
    *("diagonal", "upper_triangular", "lower_triangular"),
    *("random_condition_2", "random_condition_root", "graded_rows", "graded_columns"),
    *("kahan", "wilkinson_growth", "repeated_singular_values"),
)
"""Names of full rank for which every gradient is representable and κ u ≪ 1."""


@dataclass(frozen=True)
class Specimen:
    """A batch of test matrices, (*batch, m, n) on the CPU, and what is known about them.

    They have exactly this rank; `condition` is σ₁/σ_rank, the largest of the batch, or 1 for rank zero.
    """

    matrix: Tensor
    rank: int
    condition: float


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(BUILDERS)


def make(
    name: str,
    shape: tuple[int, int],
    dtype: torch.dtype,
    batch: tuple[int, ...] = (),
    seed: int = 0,
) -> Specimen:
    """Build a test matrix, of which those of a batch differ; the same seed gives the same bits.

    ValueError, if name or dtype are unknown, or the dtype cannot hold the matrix.
    """
    if name not in BUILDERS:
        raise ValueError(f"unknown matrix {name!r}; known are {', '.join(BUILDERS)}")
    request = Request(shape, dtype, batch, seed)
    specimen = _specimen(request, *BUILDERS[name](request))
    if not specimen.matrix.isfinite().all():
        raise ValueError(f"{name} of shape {shape} exceeds the range of {dtype}")
    return specimen


def random_with_condition(
    shape: tuple[int, int],
    dtype: torch.dtype,
    log10_cond: float,
    batch: tuple[int, ...] = (),
    seed: int = 0,
) -> Specimen:
    """Build a random matrix with condition number 10^log10_cond by construction.

    Haar-distributed singular vectors, singular values falling geometrically from 1.
    """
    request = Request(shape, dtype, batch, seed)
    return _specimen(request, *spectra.with_condition(request, 10.0**log10_cond))


def random_with_rank(
    shape: tuple[int, int],
    dtype: torch.dtype,
    rank: int,
    batch: tuple[int, ...] = (),
    seed: int = 0,
) -> Specimen:
    """Build a random matrix that has exactly this rank, not only up to rounding.

    A product C·F of factors with small integer entries, its rows and columns scaled by powers of
    two: nothing is rounded. The leading blocks of C and F are strictly diagonally dominant, so
    the rank is certain and the first columns are independent, as LU needs them; the rows are
    shuffled. The condition number comes from singular values. ValueError, if there is no such rank.
    """
    request = Request(shape, dtype, batch, seed)
    if not 0 <= rank <= request.k:
        raise ValueError(f"rank must be between 0 and {request.k} for shape {shape}, got {rank}")
    return _specimen(request, *spectra.with_exact_rank(request, rank))


def _specimen(request: Request, matrix: Array, rank: int, condition: float | None) -> Specimen:
    if condition is None:
        condition = spectra.measured_condition(matrix, rank)
    tensor = torch.from_numpy(np.ascontiguousarray(matrix)).to(request.dtype)
    return Specimen(tensor, rank, condition)
