"""One matrix whose exact gradient is asked for: what the exact formulas take."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strategies.exact.balls import Matrix, exact
from strategies.exact.rank import Profile, rank_profile


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

    inputs: tuple[NDArray[Any], ...]
    cotangents: tuple[NDArray[Any], ...]
    rank: int
    order: NDArray[np.int64] | None = None

    @property
    def matrix(self) -> NDArray[Any]:
        """A."""
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
        actual = len(rank_profile(self.matrix)[0])
        if actual != self.rank:
            raise ValueError(
                f"the matrix has rank {actual}, not {self.rank}: see the argument rank"
            )
        if self.order is not None:
            leading = self.matrix[self.order[: self.rank], : self.rank]
            if len(rank_profile(leading)[0]) < self.rank:
                raise ValueError(
                    f"the leading {self.rank}×{self.rank} block of the pivoted matrix is singular: "
                    "the first columns are linearly dependent and LU has no gradient there"
                )

    def _held(self, array: NDArray[Any]) -> Matrix:
        matrix = np.atleast_2d(array.T).T
        return exact(matrix.astype(np.complex128) if np.iscomplexobj(self.matrix) else matrix)


class StoredFactors(Problem):
    """The problem at A = P L U, the exact product of packed factors that stand in A's place."""

    @property
    def operands(self) -> list[Matrix]:
        """A and the cotangents as ball matrices."""
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
