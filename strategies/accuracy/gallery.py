"""Test matrices by name: each seeded, with its rank and its condition number.

    >>> import torch
    >>> specimen = make("kahan", (4, 4), torch.float32)
    >>> specimen.rank, specimen.matrix.shape
    (4, torch.Size([4, 4]))

The condition number is σ₁/σ_r. It is known by construction where the docstring says so and
otherwise from singular values; it refers to the matrix before its entries are rounded to the
dtype, which moves σ_r by about u·σ₁. Zero by zero, one row, one column: every name takes every
shape.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strategies.accuracy import spectra
from strategies.accuracy.spectra import Array, Request, unitary_phases

_Built: TypeAlias = tuple[Array, int, float]
_Builder: TypeAlias = Callable[[Request], _Built]

_BUILDERS: dict[str, _Builder] = {}


@dataclass(frozen=True)
class Specimen:
    """A batch of test matrices and what is known about them.

    Attributes:
        name: the gallery's name.
        matrix: (*batch, m, n) on the CPU.
        rank: the exact rank, of every matrix of the batch.
        condition: σ₁/σ_rank, the largest of the batch; 1 where the rank is zero.
    """

    name: str
    matrix: Tensor
    rank: int
    condition: float


def names() -> tuple[str, ...]:
    """Return the names that `make` knows."""
    return tuple(_BUILDERS)


def describe(name: str) -> str:
    """Return what the matrix is for, how it is built and where it comes from."""
    return inspect.getdoc(_builder(name)) or ""


def make(
    name: str,
    shape: tuple[int, int],
    dtype: torch.dtype,
    batch: tuple[int, ...] = (),
    seed: int = 0,
) -> Specimen:
    """Build a test matrix.

    Args:
        name: one of `names()`.
        shape: (m, n), any sizes from zero up.
        dtype: float32, float64, complex64 or complex128.
        batch: the batch dimensions; the matrices of a batch differ.
        seed: the same seed gives the same bits.

    Raises:
        ValueError: an unknown name or dtype, or a matrix that the dtype cannot hold.
    """
    request = Request(shape, dtype, batch, seed)
    matrix, rank, condition = _builder(name)(request)
    return _specimen(name, request, matrix, rank, condition)


def random_with_condition(
    shape: tuple[int, int],
    dtype: torch.dtype,
    log10_cond: float,
    batch: tuple[int, ...] = (),
    seed: int = 0,
) -> Specimen:
    """Build a random matrix with condition number 10^log10_cond by construction.

    Haar-distributed singular vectors, singular values falling geometrically from 1.

    Example:
        >>> random_with_condition((8, 5), torch.float64, 3).condition
        1000.0
    """
    request = Request(shape, dtype, batch, seed)
    condition = 10.0**log10_cond if request.k > 1 else 1.0
    values = np.geomspace(1, 1 / condition, request.k)
    matrix = spectra.with_singular_values(request, values)
    return _specimen("random_with_condition", request, matrix, request.k, condition)


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
    the rank is certain and the first columns are independent (LU needs that); the rows are
    shuffled. The condition number comes from singular values.

    Raises:
        ValueError: the rank is negative or above min(m, n).
    """
    request = Request(shape, dtype, batch, seed)
    if not 0 <= rank <= request.k:
        raise ValueError(f"rank must be between 0 and {request.k} for shape {shape}, got {rank}")
    matrix = spectra.with_exact_rank(request, rank)
    condition = spectra.measured_condition(matrix, rank)
    return _specimen("random_with_rank", request, matrix, rank, condition)


def _builder(name: str) -> _Builder:
    try:
        return _BUILDERS[name]
    except KeyError:
        raise ValueError(f"unknown matrix {name!r}; known are {', '.join(_BUILDERS)}") from None


def _specimen(name: str, request: Request, matrix: Array, rank: int, condition: float) -> Specimen:
    tensor = torch.from_numpy(np.ascontiguousarray(matrix)).to(request.dtype)
    if not tensor.isfinite().all():
        raise ValueError(f"{name} of shape {request.shape} exceeds the range of {request.dtype}")
    return Specimen(name, tensor, rank, condition)


def _named(builder: _Builder) -> _Builder:
    _BUILDERS[builder.__name__.removeprefix("_")] = builder
    return builder


def _random(request: Request, condition: float) -> _Built:
    condition = condition if request.k > 1 else 1.0
    values = np.geomspace(1, 1 / condition, request.k)
    return spectra.with_singular_values(request, values), request.k, condition


@_named
def _diagonal(request: Request) -> _Built:
    """Diagonal, magnitudes from 1 to 1/2, random signs or phases: rounding errors barely arise.

    Condition number 2 by construction. LAPACK Working Note 41, matrix type 1.
    """
    values = np.geomspace(1, 0.5, request.k) * unitary_phases(request, request.k)
    matrix = np.zeros((*request.batch, *request.shape), values.dtype)
    matrix[..., range(request.k), range(request.k)] = values
    return matrix, request.k, 2.0 if request.k > 1 else 1.0


@_named
def _upper_triangular(request: Request) -> _Built:
    """Upper triangular or trapezoidal: L is the identity, pivoting has nothing to do.

    The R of a random matrix with condition number 2, which it shares by construction. LAPACK
    Working Note 41, matrix type 2.
    """
    matrix, rank, condition = _random(request, 2.0)
    triangle = np.zeros_like(matrix)
    factor = np.linalg.qr(matrix).R
    triangle[..., : factor.shape[-2], :] = factor
    return triangle, rank, condition


@_named
def _lower_triangular(request: Request) -> _Built:
    """Lower triangular or trapezoidal: the adjoint of `upper_triangular`.

    Condition number 2 by construction. LAPACK Working Note 41, matrix type 3.
    """
    m, n = request.shape
    matrix, rank, condition = _upper_triangular(request.reshaped((n, m)))
    return matrix.conj().swapaxes(-1, -2), rank, condition


@_named
def _random_condition_2(request: Request) -> _Built:
    """Random with condition number 2 by construction: nothing should go wrong.

    Haar-distributed singular vectors (Mezzadri 2007), geometric singular values. LAPACK Working
    Note 41, matrix type 4.
    """
    return _random(request, 2.0)


@_named
def _first_column_zero(request: Request) -> _Built:
    """Random, then the first column set to zero: exactly singular at the first pivot.

    The other columns have condition number 2 by construction. LAPACK Working Note 41, type 5.
    """
    return _zero_columns(request, range(min(1, request.shape[1])))


@_named
def _last_column_zero(request: Request) -> _Built:
    """Random, then the last column set to zero: exactly singular at the last pivot.

    The other columns have condition number 2 by construction. LAPACK Working Note 41, type 6.
    """
    columns = request.shape[1]
    return _zero_columns(request, range(max(columns - 1, 0), columns))


@_named
def _last_half_columns_zero(request: Request) -> _Built:
    """Random, then the last half of the columns set to zero: a large null space.

    The other columns have condition number 2 by construction. LAPACK Working Note 41, type 7.
    """
    columns = request.shape[1]
    return _zero_columns(request, range((columns + 1) // 2, columns))


@_named
def _random_condition_root(request: Request) -> _Built:
    """Random with condition number √(0.1/u): AᴴA is as ill conditioned as the dtype can bear.

    By construction, geometric singular values. LAPACK Working Note 41, matrix type 8.
    """
    return _random(request, math.sqrt(0.1 / request.roundoff))


@_named
def _random_condition_max(request: Request) -> _Built:
    """Random with condition number 0.1/u: the edge of numerical singularity.

    By construction, geometric singular values. LAPACK Working Note 41, matrix type 9.
    """
    return _random(request, 0.1 / request.roundoff)


@_named
def _near_underflow(request: Request) -> _Built:
    """Random with condition number 2, scaled to a norm near u⁻¹ times the smallest number.

    The power of two is LAPACK's, 0.25·tiny/u (its xLATB4): the inverse is representable, the
    square of neither. Condition number 2 by construction. LAPACK Working Note 41, type 10.
    """
    matrix, rank, condition = _random(request, 2.0)
    return matrix * _smallest_norm(request), rank, condition


@_named
def _near_overflow(request: Request) -> _Built:
    """Random with condition number 2, scaled to the inverse norm of `near_underflow`.

    Condition number 2 by construction. LAPACK Working Note 41, matrix type 11.
    """
    matrix, rank, condition = _random(request, 2.0)
    return matrix / _smallest_norm(request), rank, condition


@_named
def _graded_rows(request: Request) -> _Built:
    """Orthonormal rows or columns, row i then scaled by a falling power of two.

    Scale-invariant methods see a condition number near one. The power falls from 1 to about
    √u; wide and square matrices have its inverse as condition number by construction. After
    Higham 2002, section 9.8 on scaling.
    """
    m, n = request.shape
    matrix, rank, condition = _graded_columns(request.reshaped((n, m)))
    return matrix.conj().swapaxes(-1, -2), rank, condition


@_named
def _graded_columns(request: Request) -> _Built:
    """Orthonormal rows or columns, column j then scaled by a falling power of two.

    Scale-invariant methods see a condition number near one. The power falls from 1 to about
    √u; tall and square matrices have its inverse as condition number by construction. After
    Higham 2002, section 9.8 on scaling.
    """
    m, n = request.shape
    orthonormal = spectra.with_singular_values(request, np.ones(request.k))
    depth = math.floor(-math.log2(request.roundoff) / 2)
    steps = np.round(np.linspace(0, depth, n)) if n > 1 else np.zeros(n)
    matrix = orthonormal * 2.0**-steps
    if m >= n:
        return matrix, request.k, 2.0**depth if request.k > 1 else 1.0
    return matrix, request.k, spectra.measured_condition(matrix, request.k)


@_named
def _kahan(request: Request) -> _Built:
    """Kahan's triangle, diag(1, s, s², ...)·(1 on the diagonal, −c above), s = sin 1.2.

    Pivoted QR and triangular condition estimates miss how near to singular it is. Rows and
    columns get random phases out of ±1, ±i, which moves no singular value; the rest of
    a rectangle is zero. ‖R‖₂‖R⁻¹‖₂ is accurate at any size: R⁻¹ has no cancellation. Kahan 1966;
    Higham 2002, chapter 8.
    """
    k, angle = request.k, 1.2
    unit = np.eye(k) - math.cos(angle) * np.triu(np.ones((k, k)), 1)
    triangle = math.sin(angle) ** np.arange(k)[:, None] * unit
    inverse = torch.linalg.solve_triangular(
        torch.from_numpy(triangle), torch.eye(k, dtype=torch.float64), upper=True
    ).numpy()
    condition = np.linalg.norm(triangle, 2) * np.linalg.norm(inverse, 2) if k else 1.0
    return _phased(request, triangle), k, float(condition)


@_named
def _wilkinson_growth(request: Request) -> _Built:
    """One on the diagonal and in the last column, −1 below: pivots double at every step.

    Elimination with partial pivoting grows by 2^(k−1) although the condition number, from
    singular values, is below k. Rows and columns get random phases out of ±1, ±i; the rest of a
    rectangle is zero. Wilkinson 1961; Higham 2002, section 9.4.
    """
    k = request.k
    if k > math.log2(torch.finfo(request.dtype).max):
        raise ValueError(f"growth 2^{k - 1} exceeds the range of {request.dtype}")
    square = np.eye(k) - np.tril(np.ones((k, k)), -1)
    square[:, k - 1 :] = 1
    return _phased(request, square), k, spectra.measured_condition(square, k)


@_named
def _one_tiny_singular_value(request: Request) -> _Built:
    """All singular values 1 but the last, 10u: the rank looks deficient by one.

    Condition number 0.1/u by construction. LAPACK's xLATMS, mode 2.
    """
    values = np.ones(request.k)
    values[1:][-1:] = 10 * request.roundoff
    matrix = spectra.with_singular_values(request, values)
    return matrix, request.k, 1 / float(values.min(initial=1.0))


@_named
def _repeated_singular_values(request: Request) -> _Built:
    """Half of the singular values 1, half 1/8: formulas that divide by σᵢ − σⱼ break.

    Condition number 8 by construction. After LAPACK's xLATMS, modes 1 and 2.
    """
    values = np.where(np.arange(request.k) < (request.k + 1) // 2, 1, 0.125)
    matrix = spectra.with_singular_values(request, values)
    return matrix, request.k, 8.0 if request.k > 1 else 1.0


@_named
def _half_rank(request: Request) -> _Built:
    """Exactly half the possible rank: `random_with_rank`.

    Condition number from singular values. This project's own.
    """
    rank = (request.k + 1) // 2
    matrix = spectra.with_exact_rank(request, rank)
    return matrix, rank, spectra.measured_condition(matrix, rank)


@_named
def _zero(request: Request) -> _Built:
    """The zero matrix: rank zero, pseudoinverse and gradients zero.

    LAPACK's xLATMS, mode 0 with zero singular values.
    """
    return np.zeros((*request.batch, *request.shape)), 0, 1.0


def _zero_columns(request: Request, columns: range) -> _Built:
    m, n = request.shape
    kept = [j for j in range(n) if j not in columns]
    matrix = np.zeros((*request.batch, m, n), np.complex128 if request.is_complex else np.float64)
    matrix[..., kept], rank, condition = _random(request.reshaped((m, len(kept))), 2.0)
    return matrix, rank, condition


def _smallest_norm(request: Request) -> float:
    return 0.25 * float(torch.finfo(request.dtype).tiny) / request.roundoff


def _phased(request: Request, square: NDArray[np.float64]) -> Array:
    """Put random phases on rows and columns and zeros around, which changes no singular value."""
    k = request.k
    left, right = np.split(unitary_phases(request, 2 * k), 2, axis=-1)
    phased = left[..., :, None] * square * right[..., None, :]
    matrix = np.zeros((*request.batch, *request.shape), phased.dtype)
    matrix[..., :k, :k] = phased
    return matrix
