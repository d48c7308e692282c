"""More matrices of the gallery: deficient ones as programs meet them, and badly scaled ones.

Unlike a product of Gaussian factors, these defeat a rank decision or a scaling in practice. Those of
deficient rank are exact: copies, zeros, or small integers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from strategies.accuracy import spectra
from strategies.accuracy.spectra import Array, Built, Request, with_condition

Builder = Callable[[Request], Built]


def _repeated_columns(request: Request) -> Built:
    """The second half of the columns repeats the first; κ = 2 in the first."""
    m, n = request.shape
    half = -(-n // 2)
    columns, _, _ = with_condition(replace(request, shape=(m, half)), 2.0)
    columns = columns.astype(_numpy_dtype(request))
    matrix = np.concatenate([columns, columns[..., : n - half]], axis=-1)
    rank = min(m, half)
    return matrix, rank, spectra.measured_condition(matrix, rank)


def _zero_row(request: Request) -> Built:
    """The first row is zero, κ = 2 in the others."""
    m, n = request.shape
    others, rank, condition = with_condition(replace(request, shape=(max(m - 1, 0), n)), 2.0)
    matrix = np.zeros((*request.batch, m, n), others.dtype)
    matrix[..., 1:, :] = others
    return matrix, rank, condition


def _laplacian(request: Request) -> Built:
    """Of a path graph: 2 on the diagonal (1 at its ends), −1 beside it; the ones are its null vector."""
    k = request.k
    square = 2 * np.eye(k) - np.eye(k, k=1) - np.eye(k, k=-1)
    square[:1, :1] = square[k - 1 :, k - 1 :] = float(k > 1)
    matrix = np.zeros((*request.batch, *request.shape))
    matrix[..., :k, :k] = square
    rank = max(k - 1, 0)
    return matrix, rank, spectra.measured_condition(matrix, rank)


def _parallel_factors(request: Request) -> Built:
    """C F of rank ⌈k/2⌉ with two nearly parallel columns in C, all integers, no product rounded.

    One column of C is 2^q times another plus a few units, with q about half of the digits.
    """
    m, n = request.shape
    rank = -(-request.k // 2)
    rng = request.random(4)
    left = spectra.dominant_on_top(request, rng, m, rank)
    right = spectra.dominant_on_top(request, rng, n, rank).swapaxes(-1, -2)
    if rank > 1:
        left[..., 1] += 2.0 ** math.floor(-math.log2(request.roundoff) * 0.4) * left[..., 0]
    matrix = left @ right
    order = np.argsort(rng.random(matrix.shape[:-1]), axis=-1)
    matrix = np.take_along_axis(matrix, order[..., None], axis=-2)
    return matrix, rank, spectra.measured_condition(matrix, rank)


def _nearly_constant(request: Request) -> Built:
    """Ones, plus the identity and noise at the level of some hundred roundoffs."""
    m, n = request.shape
    size = 2.0 ** (math.ceil(math.log2(max(m, n, 1))) + 8) * request.roundoff
    noise = request.random(5).standard_normal((*request.batch, m, n))
    matrix = 1 + size * (np.eye(m, n) + noise / 8)
    return matrix, request.k, spectra.measured_condition(matrix, request.k)


def _shuffled_rows(request: Request) -> Built:
    """κ = 2, then the rows scaled by powers of two from 1 to about √u, in random order."""
    matrix, rank, _ = with_condition(request, 2.0)
    matrix = _powers(request, request.shape[0], 6)[..., :, None] * matrix
    return matrix, rank, spectra.measured_condition(matrix, rank)


def _shuffled_rows_and_columns(request: Request) -> Built:
    """Both rows and columns scaled so, each to about the fourth root of u."""
    matrix, rank, _ = with_condition(request, 2.0)
    rows, columns = (_powers(request, size, 7 + i, 4) for i, size in enumerate(request.shape))
    matrix = rows[..., :, None] * matrix * columns[..., None, :]
    return matrix, rank, spectra.measured_condition(matrix, rank)


def _powers(request: Request, size: int, stream: int, root: int = 2) -> Array:
    depth = math.floor(-math.log2(request.roundoff) / root)
    steps = np.round(np.linspace(0, depth, size))
    order = np.argsort(request.random(stream).random((*request.batch, size)), axis=-1)
    return 2.0 ** -steps[order]


def _numpy_dtype(request: Request) -> np.dtype[np.generic]:
    return np.dtype(str(request.dtype).removeprefix("torch."))


HARD: Mapping[str, Builder] = {
    "repeated_columns": _repeated_columns,
    "zero_row": _zero_row,
    "laplacian": _laplacian,
    "parallel_factors": _parallel_factors,
    "nearly_constant": _nearly_constant,
    "shuffled_rows": _shuffled_rows,
    "shuffled_rows_and_columns": _shuffled_rows_and_columns,
}
"""Every builder by the gallery's name for it."""
