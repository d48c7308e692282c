"""The gallery's matrices: each a function from a request to a matrix, its rank and its condition.

The condition number κ = σ₁/σ_r is known by construction unless a comment says otherwise. u is the
unit roundoff of the requested dtype, k the smaller dimension. The first eleven are the types 1 to 11
of LAPACK Working Note 41, which LAPACK's test programs use; xLATMS and xLATB4 are their generators.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from strategies.accuracy import spectra
from strategies.accuracy.spectra import Array, Built, Request, with_condition

Builder = Callable[[Request], Built]


def _diagonal(request: Request) -> Built:
    """Magnitudes from 1 to 1/2, random signs or phases: rounding errors barely arise."""
    k = request.k
    values = np.geomspace(1, 0.5, k) * spectra.phases(request, request.random(3), k)
    matrix = np.zeros((*request.batch, *request.shape), values.dtype)
    matrix[..., range(k), range(k)] = values
    return matrix, k, 2.0 if k > 1 else 1.0


def _upper_triangular(request: Request) -> Built:
    """The R of a random matrix with κ = 2, possibly trapezoidal: L is I, pivoting has no work."""
    matrix, rank, condition = with_condition(request, 2.0)
    return spectra.in_corner(request, np.linalg.qr(matrix).R), rank, condition


def _with_zeros(request: Request, rows: slice = slice(0), columns: slice = slice(0)) -> Built:
    """Zero in these rows and columns, κ = 2 in the others."""
    m, n = request.shape
    i, j = np.delete(np.arange(m), rows), np.delete(np.arange(n), columns)
    others, rank, condition = with_condition(replace(request, shape=(len(i), len(j))), 2.0)
    matrix = np.zeros((*request.batch, m, n), others.dtype)
    matrix[..., i[:, None], j] = others
    return matrix, rank, condition


def _near_an_end_of_the_range(request: Request, power: int) -> Built:
    """κ = 2, scaled by a power of 0.25·tiny/u (xLATB4), tiny being the smallest normal number."""
    matrix, rank, condition = with_condition(request, 2.0)
    smallest = 0.25 * float(torch.finfo(request.dtype).tiny) / request.roundoff
    return matrix * smallest**power, rank, condition


def _adjoint_of(builder: Builder, request: Request) -> Built:
    matrix, rank, condition = builder(replace(request, shape=request.shape[::-1]))
    return matrix.conj().swapaxes(-1, -2), rank, condition


def _graded_columns(request: Request) -> Built:
    """Orthonormal rows or columns, then column j scaled by a power of two that falls to about √u.

    Scale-invariant methods see a κ near one. The inverse of the last power is κ where m ≥ n; that
    of wide matrices is measured. After Higham 2002, section 9.8 on scaling.
    """
    m, n = request.shape
    orthonormal = spectra.with_singular_values(request, np.ones(request.k))
    depth = math.floor(-math.log2(request.roundoff) / 2)
    steps = np.round(np.linspace(0, depth, n)) if n > 1 else np.zeros(n)
    condition = 2.0**depth if request.k > 1 else 1.0
    return orthonormal * 2.0**-steps, request.k, condition if m >= n else None


def _kahan(request: Request) -> Built:
    """Kahan's triangle, diag(1, s, s², ...)·(1 on the diagonal, −c above), s = sin 1.2.

    Pivoted QR and triangular condition estimates miss how near to singular it is. κ is measured
    as ‖R‖₂‖R⁻¹‖₂, which is accurate at any size: R⁻¹ has no cancellation. Kahan 1966; Higham 2002,
    chapter 8.
    """
    k, angle = request.k, 1.2
    unit = np.eye(k) - math.cos(angle) * np.triu(np.ones((k, k)), 1)
    triangle = math.sin(angle) ** np.arange(k)[:, None] * unit
    inverse = np.linalg.inv(triangle)
    condition = np.linalg.norm(triangle, 2) * np.linalg.norm(inverse, 2) if k else 1.0
    return _phased(request, triangle), k, float(condition)


def _wilkinson_growth(request: Request) -> Built:
    """One on the diagonal and in the last column, −1 below: pivots double at every step.

    Elimination with partial pivoting grows by 2^(k−1), although the measured κ is below k.
    Wilkinson 1961; Higham 2002, section 9.4.
    """
    k = request.k
    if k > math.log2(torch.finfo(request.dtype).max):
        raise ValueError(f"growth 2^{k - 1} exceeds the range of {request.dtype}")
    square = np.eye(k) - np.tril(np.ones((k, k)), -1)
    square[:, k - 1 :] = 1
    return _phased(request, square), k, None


def _phased(request: Request, square: NDArray[np.float64]) -> Array:
    """Put random phases ±1, ±i on rows and columns and zeros around: σ stay as they are."""
    k = request.k
    left, right = np.split(spectra.phases(request, request.random(3), 2 * k), 2, axis=-1)
    return spectra.in_corner(request, left[..., :, None] * square * right[..., None, :])


def _one_tiny_singular_value(request: Request) -> Built:
    """All singular values 1 but the last, 10u: the rank looks deficient by one. xLATMS, mode 2."""
    values = np.ones(request.k)
    values[1:][-1:] = 10 * request.roundoff
    matrix = spectra.with_singular_values(request, values)
    return matrix, request.k, 1 / float(values.min(initial=1.0))


def _repeated_singular_values(request: Request) -> Built:
    """Half of the singular values 1, half 1/8: formulas that divide by σᵢ − σⱼ break.

    After xLATMS, modes 1 and 2.
    """
    values = np.where(np.arange(request.k) < (request.k + 1) // 2, 1, 0.125)
    return spectra.with_singular_values(request, values), request.k, 8.0 if request.k > 1 else 1.0


def _repeated_columns(request: Request) -> Built:
    """The second half of the columns repeats the first; κ = 2 in the first."""
    m, n = request.shape
    half = -(-n // 2)
    columns, _, _ = with_condition(replace(request, shape=(m, half)), 2.0)
    columns = columns.astype(str(request.dtype).removeprefix("torch."))
    return np.concatenate([columns, columns[..., : n - half]], axis=-1), min(m, half), None


def _laplacian(request: Request) -> Built:
    """Of a path graph: 2 on the diagonal (1 at its ends), −1 beside it; the ones are its null vector."""
    k = request.k
    square = 2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1)
    square[:1, :1] = square[k - 1 :, k - 1 :] = float(k > 1)
    return spectra.in_corner(request, square), max(k - 1, 0), None


def _parallel_factors(request: Request) -> Built:
    """C F of rank ⌈k/2⌉ with two nearly parallel columns in C, all integers, no product rounded.

    One column of C is 2^q times another plus a few units, with q about half of the digits.
    """
    rank, rng = -(-request.k // 2), request.random(4)
    left, right = spectra.integer_factors(request, rng, rank)
    if rank > 1:
        left[..., 1] += 2.0 ** math.floor(-math.log2(request.roundoff) * 0.4) * left[..., 0]
    return spectra.with_shuffled_rows(rng, left @ right), rank, None


def _nearly_constant(request: Request) -> Built:
    """Ones, plus the identity and noise at the level of some hundred roundoffs."""
    m, n = request.shape
    size = 2.0 ** (math.ceil(math.log2(max(m, n, 1))) + 8) * request.roundoff
    noise = request.random(5).standard_normal((*request.batch, m, n))
    return 1 + size * (np.eye(m, n) + noise / 8), request.k, None


def _shuffled_rows(request: Request) -> Built:
    """κ = 2, then the rows scaled by powers of two from 1 to about √u, in random order."""
    matrix, rank, _ = with_condition(request, 2.0)
    return _powers(request, request.shape[0], 6)[..., :, None] * matrix, rank, None


def _shuffled_rows_and_columns(request: Request) -> Built:
    """Both rows and columns scaled so, each to about the fourth root of u."""
    matrix, rank, _ = with_condition(request, 2.0)
    rows, columns = (_powers(request, size, 7 + i, 4) for i, size in enumerate(request.shape))
    return rows[..., :, None] * matrix * columns[..., None, :], rank, None


def _powers(request: Request, size: int, stream: int, root: int = 2) -> Array:
    depth = math.floor(-math.log2(request.roundoff) / root)
    steps = np.round(np.linspace(0, depth, size))
    order = np.argsort(request.random(stream).random((*request.batch, size)), axis=-1)
    return 2.0 ** -steps[order]


BUILDERS: dict[str, Builder] = {
    "diagonal": _diagonal,
    "upper_triangular": _upper_triangular,
    "lower_triangular": lambda r: _adjoint_of(_upper_triangular, r),
    # Nothing should go wrong.
    "random_condition_2": lambda r: with_condition(r, 2.0),
    # Singular at the first pivot, at the last, and from half way on.
    "first_column_zero": lambda r: _with_zeros(r, columns=slice(1)),
    "last_column_zero": lambda r: _with_zeros(r, columns=slice(-1, None)),
    "last_half_columns_zero": lambda r: _with_zeros(r, columns=slice((r.shape[1] + 1) // 2, None)),
    # AᴴA is as ill conditioned as the dtype can bear; then A itself.
    "random_condition_root": lambda r: with_condition(r, math.sqrt(0.1 / r.roundoff)),
    "random_condition_max": lambda r: with_condition(r, 0.1 / r.roundoff),
    # The inverse is representable, the square of neither.
    "near_underflow": lambda r: _near_an_end_of_the_range(r, 1),
    "near_overflow": lambda r: _near_an_end_of_the_range(r, -1),
    "graded_rows": lambda r: _adjoint_of(_graded_columns, r),
    "graded_columns": _graded_columns,
    "kahan": _kahan,
    "wilkinson_growth": _wilkinson_growth,
    "one_tiny_singular_value": _one_tiny_singular_value,
    "repeated_singular_values": _repeated_singular_values,
    # As by `gallery.random_with_rank`.
    "half_rank": lambda r: spectra.with_exact_rank(r, (r.k + 1) // 2),
    # Pseudoinverse and gradients are zero.
    "zero": lambda r: (np.zeros((*r.batch, *r.shape)), 0, 1.0),
    # Deficient as programs meet it, and badly scaled: these defeat a rank decision or a scaling, as
    # products of Gaussian factors do not. Those of deficient rank are exact: copies, zeros, small integers.
    "repeated_columns": _repeated_columns,
    "zero_row": lambda r: _with_zeros(r, rows=slice(1)),
    "laplacian": _laplacian,
    "parallel_factors": _parallel_factors,
    "nearly_constant": _nearly_constant,
    "shuffled_rows": _shuffled_rows,
    "shuffled_rows_and_columns": _shuffled_rows_and_columns,
}
"""Every builder by the gallery's name for it."""
