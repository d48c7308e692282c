"""Matrices of balls: what the exact formulas need beyond python-flint's own operators.

A ball is a midpoint with a radius that bounds everything lost so far. `arb_mat` holds real balls,
`acb_mat` complex ones; every helper takes either. Arithmetic rounds to `flint.ctx.prec` bits, which
the caller sets. Where a matrix is of dual numbers, so is what is made of it (`strategies.exact.dual`).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import acb_mat, arb, arb_mat
from numpy.typing import NDArray

from strategies.exact.dual import Dual, linear

# Any kind, arb_mat, acb_mat or Dual: python-flint types them as unrelated.
Matrix = Any


class UnresolvedError(ArithmeticError):
    """The working precision is too low to decide; more bits may."""


def exact(array: NDArray[Any]) -> Matrix:
    """Hold a two-dimensional float array as the binary numbers it is, without any rounding."""
    rows, columns = array.shape
    if np.iscomplexobj(array):
        return acb_mat(rows, columns, array.astype(np.complex128).ravel().tolist())
    return arb_mat(rows, columns, array.astype(np.float64).ravel().tolist())


def zeros(like: Matrix, rows: int, columns: int) -> Matrix:
    """Return the zero matrix of the same kind, real or complex."""
    return _kind(like)(rows, columns)


def identity(like: Matrix, size: int) -> Matrix:
    """Return the identity of the same kind, real or complex."""
    return _kind(like)(size, size, 1)


@linear
def scalar(entry: Any, like: Matrix) -> Matrix:
    """Return the 1×1 matrix of a number, real or complex as another matrix is."""
    return _kind(like)(1, 1, [entry])


@linear
def adjoint(a: Matrix) -> Matrix:
    """Return the conjugate transpose."""
    return a.conjugate().transpose() if isinstance(a, acb_mat) else a.transpose()


@linear
def select(a: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
    """Return the submatrix of these rows and columns."""
    table = a.tolist()
    return type(a)(len(rows), len(columns), [table[i][j] for i in rows for j in columns])


def blocks(a: Matrix, size: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Split into [[size×size, rest], [rest, rest]], returned row by row."""
    first, below, right = range(size), range(size, a.nrows()), range(size, a.ncols())
    upper_left, upper_right = select(a, first, first), select(a, first, right)
    return upper_left, upper_right, select(a, below, first), select(a, below, right)


def join(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Matrix:
    """Put [[a, b], [c, d]] together: the inverse of `blocks`."""
    if any(isinstance(part, Dual) for part in (a, b, c, d)):
        parts = [part if isinstance(part, Dual) else Dual(part, part * 0) for part in (a, b, c, d)]
        return Dual(join(*(part.value for part in parts)), join(*(part.tangent for part in parts)))
    entries = [
        entry
        for left, right in ((a, b), (c, d))
        for rows in zip(left.tolist(), right.tolist(), strict=True)
        for entry in itertools.chain(*rows)
    ]
    return type(a)(a.nrows() + c.nrows(), a.ncols() + b.ncols(), entries)


@linear
def strictly_lower(a: Matrix) -> Matrix:
    """Keep what is below the diagonal."""
    entries = [x if j < i else 0 for i, row in enumerate(a.tolist()) for j, x in enumerate(row)]
    return type(a)(a.nrows(), a.ncols(), entries)


def upper(a: Matrix) -> Matrix:
    """Keep the diagonal and what is above it."""
    return a - strictly_lower(a)


@linear
def diagonal(a: Matrix) -> Matrix:
    """Keep the diagonal of a square matrix."""
    kept = zeros(a, a.nrows(), a.ncols())
    for i in range(a.nrows()):
        kept[i, i] = a[i, i]
    return kept


def lower(a: Matrix) -> Matrix:
    """Keep what is below the diagonal, and of the diagonal the real part, as a Cholesky factor has it."""
    on_diagonal = diagonal(a)
    return strictly_lower(a) + (on_diagonal + adjoint(on_diagonal)) / 2


def norm_bound(a: Matrix) -> arb:
    """Bound the Frobenius norm of every matrix in the ball from above."""
    return sum((abs(x).abs_upper() ** 2 for x in a.entries()), arb(0)).sqrt().abs_upper()


def radius_bound(a: Matrix) -> arb:
    """Bound the Frobenius norm of the radii from above, by their sum.

    The sum is the radius of 1ᵀ(a − mid a)1, two products with no loop over entries.
    """
    spread = a - a.mid()
    row, column = type(a)(1, a.nrows(), [1] * a.nrows()), type(a)(a.ncols(), 1, [1] * a.ncols())
    return abs((row * spread * column)[0, 0]).abs_upper()


def _kind(like: Matrix) -> Any:
    return type(like.value if isinstance(like, Dual) else like)
