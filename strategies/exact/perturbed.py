"""A problem whose inputs are moved by one rounding, exactly: what roundoff in the inputs does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from strategies.exact.balls import Matrix, select, zeros
from strategies.exact.problem import Problem

Array = NDArray[Any]


@dataclass(frozen=True)
class Perturbed(Problem):
    """The problem with A, B and the cotangents moved column by column.

    An entry moves by 2^power of the largest entry of its column, up or down at random, or in one of four
    directions of the complex plane: what one orthogonal transformation of a column may add to it. Where
    rows are transformed, too, as a minimum-norm solution needs it, the largest of all entries counts.

    A matrix of deficient rank has to keep its rank r. Of the moved matrix M only r rows I and columns J
    are kept, where complete pivoting finds its pivots, and M[:, J] M[I, J]⁻¹ M[I, :] takes its place.

    Attributes:
        power: log₂ of the relative size.
        seed: of the directions.
        axis: along which the largest entry of A is taken, and of what is shaped as A or its adjoint: 0 is
            down each column, 1 along each row, as where Aᴴ is factored, None is both.
    """

    power: int = 0
    seed: int = 0
    axis: int | None = 0

    @property
    def operands(self) -> list[Matrix]:
        """Inputs and cotangents as ball matrices."""
        rng = np.random.default_rng(self.seed)
        arrays = [*self.inputs, *self.cotangents]
        sizes = [self._sizes(array) for array in arrays]
        moved = [
            held + self._held(_directions(array, rng) * size) * arb(2) ** self.power
            for array, size, held in zip(arrays, sizes, super().operands, strict=True)
        ]
        if self.rank < min(self.matrix.shape):
            moved[0] = crossed(moved[0], *_pivots(self.matrix, self.rank))
        return moved

    def _sizes(self, array: Array) -> Array:
        """The largest modulus of every column, for each entry."""
        if array.ndim == 0:
            return abs(array)
        axis = self.axis if sorted(array.shape) == sorted(self.matrix.shape) else 0
        return np.broadcast_to(abs(array).max(axis, keepdims=True, initial=0.0), array.shape)


def crossed(a: Matrix, rows: list[int], columns: list[int]) -> Matrix:
    """The matrix of rank `len(rows)` that agrees with A in these rows and columns."""
    if not rows:
        return zeros(a, a.nrows(), a.ncols())
    core = select(a, rows, columns).inv()
    return select(a, range(a.nrows()), columns) * core * select(a, rows, range(a.ncols()))


def _pivots(array: Array, count: int) -> tuple[list[int], list[int]]:
    """Rows and columns of the first pivots of an elimination with complete pivoting."""
    exponent = np.frexp(abs(array).max(initial=0.0))[1]
    rest = array.astype(np.result_type(array, np.float64)) * np.exp2(-exponent / 2) ** 2
    rows, columns = [], []
    for _ in range(count):
        i, j = map(int, np.unravel_index(np.argmax(abs(rest)), rest.shape))
        rows.append(i)
        columns.append(j)
        rest = rest - np.outer(rest[:, j], rest[i] / rest[i, j])
        rest[rows], rest[:, columns] = 0, 0
    return rows, columns


def _directions(like: Array, rng: np.random.Generator) -> Array:
    units = np.array([1, 1j, -1, -1j] if np.iscomplexobj(like) else [1.0, -1.0])
    return units[rng.integers(0, len(units), like.shape)]
