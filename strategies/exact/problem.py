"""What exact formulas take: a matrix as it is, by its factors, moved by a rounding, or with a direction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from strategies.exact.balls import Matrix, exact, select, zeros
from strategies.exact.dual import Dual
from strategies.exact.rank import Profile, rank_profile

Array = NDArray[Any]

Formula = Callable[[Any], tuple[Matrix, ...]]
"""From a problem to results or gradients."""


@dataclass(frozen=True)
class Problem:
    """The inputs and cotangents of an operation at one matrix A.

    Attributes:
        inputs: A, (m, n), and B where the operation takes one, (m, k) or (m,). All numbers here
            are finite floats, taken as the binary numbers they are.
        cotangents: one for each differentiable output, of up to two dimensions.
        rank: the declared exact rank of A.
        order: where in A the pivoted rows come from, int64 (m,), if the operation pivots.
    """

    inputs: tuple[Array, ...]
    cotangents: tuple[Array, ...]
    rank: int
    order: NDArray[np.int64] | None = None

    @property
    def matrix(self) -> Array:
        return self.inputs[0]

    @property
    def operands(self) -> list[Matrix]:
        """Inputs and cotangents as ball matrices, complex where A is; a vector is one column."""
        return [self._held(array) for array in (*self.inputs, *self.cotangents)]

    @property
    def profile(self) -> Profile | None:
        """Independent rows and columns of A; None at full rank."""
        if self.rank == min(self.matrix.shape):
            return None
        profile = rank_profile(self.matrix)
        if len(profile[0]) != self.rank:
            raise ValueError(f"the matrix has rank {len(profile[0])}, not {self.rank}")
        return profile

    def check_rank(self) -> None:
        """Raise ValueError if the matrix has a higher rank than the declared one."""
        _ = self.profile

    def explain_singularity(self) -> None:
        """Raise ValueError if a division by zero is due to the matrix, not to the precision."""
        rank = len(rank_profile(self.matrix)[0])
        if rank != self.rank:
            raise ValueError(f"the matrix has rank {rank}, not {self.rank}: see the argument rank")
        if self.order is not None:
            leading = self.matrix[self.order[: self.rank], : self.rank]
            if len(rank_profile(leading)[0]) < self.rank:
                raise ValueError(
                    f"the leading {self.rank}×{self.rank} block of the pivoted matrix is singular: "
                    "the first columns are linearly dependent and LU has no gradient there"
                )

    def _held(self, array: Array) -> Matrix:
        matrix = np.atleast_2d(array.T).T
        return exact(matrix.astype(np.complex128) if np.iscomplexobj(self.matrix) else matrix)


class StoredFactors(Problem):
    """The problem at A = P L U, the exact product of packed factors that stand in A's place."""

    @property
    def operands(self) -> list[Matrix]:
        packed, order = self.matrix, self.order
        lower = np.tril(packed, -1)[:, : self.rank]
        np.fill_diagonal(lower, 1)
        if order is not None:
            lower = lower[np.argsort(order)]
        product = exact(lower) * exact(np.triu(packed)[: self.rank])
        return [product, *(self._held(array) for array in self.cotangents)]

    def check_rank(self) -> None:
        """Nothing: only the first columns of L and rows of U, as many as the rank, are multiplied."""

    def explain_singularity(self) -> None:
        """Raise ValueError if a division by zero is due to U."""
        if not np.diagonal(self.matrix)[: self.rank].all():
            raise ValueError("U has a zero on its diagonal: declare the rank before it as rank=")


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
        rng = np.random.default_rng(self.seed)
        pairs = zip(super().operands, (*self.inputs, *self.cotangents), strict=True)
        moved = [
            held + self._held(_directions(array, rng) * self._sizes(array)) * arb(2) ** self.power
            for held, array in pairs
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


@dataclass(frozen=True)
class Directed:
    """A problem whose inputs are dual numbers, whose cotangents are constants.

    The last cotangents of `problem` are the tangents, one for each input. All else is the problem's own.
    With `keeps_rank`, A moves along matrices of its rank: a tangent that leaves them, as one does that was
    rounded, is replaced by one that agrees with it in as many rows and columns.
    """

    problem: Problem
    keeps_rank: bool

    @property
    def operands(self) -> list[Matrix]:
        """Inputs with tangents, then cotangents."""
        count = len(self.problem.inputs)
        held = self.problem.operands
        inputs, cotangents, tangents = held[:count], held[count:-count], held[-count:]
        moving = [*map(Dual, inputs, tangents)]
        if self.keeps_rank and (profile := self.problem.profile) is not None:
            moving[0] = crossed(moving[0], *profile)
        return [*moving, *cotangents]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)


def along(formula: Formula, *, keeps_rank: bool) -> Formula:
    """Return the formula of the derivatives, of a result or of gradients; it takes what `Directed` does."""

    def derivative(problem: Problem) -> tuple[Matrix, ...]:
        found = formula(Directed(problem, keeps_rank))
        return tuple(part.tangent if isinstance(part, Dual) else part * 0 for part in found)

    return derivative
