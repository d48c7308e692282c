"""What a factored matrix must be able to apply: the contract between strategies and formulas.

Every way to hold F⁺ of an m×n matrix F goes through *coordinates of the range* of F: a pair of maps
with `from_range(to_range(b)) = F F⁺ b` and `to_range(from_range(c)) = c`, and a pair that crosses to
the domain, so that

    F⁺  = solve ∘ to_range        F⁺ᴴ = from_range ∘ solve_adjoint        (FᴴF)⁺ = solve ∘ solve_adjoint.

With a QR the range coordinates are Qᴴb and `solve` is R⁻¹; with an inverse formed as a matrix they
are b itself and `solve` is the product with F⁻¹. A formula written over these four touches the long
side of a thin matrix as rarely as the mathematics allows, whichever strategy it is given.
"""

from __future__ import annotations

import dataclasses
import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import torch
from torch import Tensor

_FACTORED_MATRIX = "matrix"


class Structure(enum.Enum):
    """Which entries of a matrix to factor are to be read.

    Example:
        >>> Structure("upper").is_triangular
        True
    """

    GENERAL = "general"
    LOWER = "lower"
    UNIT_LOWER = "unit lower"
    UPPER = "upper"
    UNIT_UPPER = "unit upper"

    @classmethod
    def of_triangle(cls, *, upper: bool, unit: bool) -> Structure:
        """That of a triangular matrix."""
        side = "upper" if upper else "lower"
        return cls(f"unit {side}" if unit else side)

    @property
    def is_triangular(self) -> bool:
        """Whether only a triangle is read."""
        return self is not Structure.GENERAL

    @property
    def is_upper(self) -> bool:
        """Whether that is the upper one."""
        return self in (Structure.UPPER, Structure.UNIT_UPPER)

    @property
    def is_unit(self) -> bool:
        """Whether the diagonal is one, and not read either."""
        return self in (Structure.UNIT_LOWER, Structure.UNIT_UPPER)

    def dense(self, matrix: Tensor) -> Tensor:
        """The matrix with the entries that this structure does not read set to what they stand for."""
        if not self.is_triangular:
            return matrix
        offset = int(self.is_unit)
        triangle = matrix.triu(offset) if self.is_upper else matrix.tril(-offset)
        if self.is_unit:
            triangle.diagonal(dim1=-2, dim2=-1).fill_(1)
        return triangle


class PseudoInverse(ABC):
    """F⁺ of a (batch of) m×n matrix F, held in a strategy's own form.

    A subclass is a frozen dataclass whose fields are tensors (batch dimensions first), further
    `PseudoInverse` objects, or plain constants: autograd saves the tensors and puts the rest back.
    A field called `matrix` is F itself, which autograd has as an input and does not save again.
    All methods take and return matrices with k columns and the batch shape of F.

    Attributes:
        full_column_rank: every F of the batch has n independent columns, so F⁺F = I.
        full_row_rank: every F of the batch has m independent rows, so FF⁺ = I.
    """

    full_column_rank: bool
    full_row_rank: bool

    @property
    @abstractmethod
    def rank(self) -> Tensor:
        """The rank of each matrix: int64, of the batch shape."""

    @abstractmethod
    def dense(self) -> Tensor:
        """F⁺ itself, (..., n, m), made without an m×m array."""

    @property
    def singular_values(self) -> Tensor | None:
        """All singular values, (..., min(m, n)), where the factors hold them."""
        return None

    @property
    def has_stable_gram(self) -> bool:
        """Whether F · `apply_gram(x)` is no less accurate than `apply_adjoint(x)`.

        The product of two inverses squares κ; corrected once, it does not.
        """
        return False

    @abstractmethod
    def to_range(self, b: Tensor) -> Tensor:
        """Coordinates of F F⁺ b: (..., m, k) -> (..., r, k)."""

    @abstractmethod
    def from_range(self, c: Tensor) -> Tensor:
        """The vectors that range coordinates stand for: (..., r, k) -> (..., m, k)."""

    @abstractmethod
    def solve(self, c: Tensor) -> Tensor:
        """F⁺ on range coordinates: (..., r, k) -> (..., n, k)."""

    @abstractmethod
    def solve_adjoint(self, x: Tensor) -> Tensor:
        """F⁺ᴴ into range coordinates: (..., n, k) -> (..., r, k)."""

    def null_complement(self, x: Tensor) -> Tensor:
        """(I − F⁺F) x, the part of x in the null space of F: (..., n, k) -> (..., n, k).

        Forms that are not always of full column rank have their own.
        """
        if not self.full_column_rank:
            raise NotImplementedError(f"{type(self).__name__} has no null_complement of its own")
        return torch.zeros_like(x)

    def apply(self, b: Tensor) -> Tensor:
        """F⁺ b: (..., m, k) -> (..., n, k)."""
        return self.solve(self.to_range(b))

    def apply_adjoint(self, x: Tensor) -> Tensor:
        """F⁺ᴴ x: (..., n, k) -> (..., m, k)."""
        return self.from_range(self.solve_adjoint(x))

    def apply_gram(self, x: Tensor) -> Tensor:
        """(FᴴF)⁺ x: (..., n, k) -> (..., n, k)."""
        return self.solve(self.solve_adjoint(x))

    def add_from_range(self, c: Tensor, target: Tensor) -> None:
        """Add `from_range(c)` to the target, in place: (..., r, k), (..., m, k)."""
        target += self.from_range(c)

    def range_complement(self, b: Tensor) -> Tensor:
        """(I − F F⁺) b, the part of b outside the range of F: (..., m, k) -> (..., m, k)."""
        if self.full_row_rank:
            return torch.zeros_like(b)
        return b - self.from_range(self.to_range(b))

    @property
    def adjoint(self) -> PseudoInverse:
        """(Fᴴ)⁺, from the same factors."""
        return _Adjoint(self, self.full_row_rank, self.full_column_rank)

    def tensors(self) -> Iterator[Tensor]:
        """The tensors that hold this inverse, without the factored matrix itself."""
        for name, value in vars(self).items():
            if isinstance(value, PseudoInverse):
                yield from value.tensors()
            elif isinstance(value, Tensor) and name != _FACTORED_MATRIX:
                yield value

    def holds_matrix(self) -> bool:
        """Whether the factored matrix itself is part of it, beside `tensors()`."""
        return any(
            value.holds_matrix() if isinstance(value, PseudoInverse) else name == _FACTORED_MATRIX
            for name, value in vars(self).items()
        )

    def rebuilt(self, tensors: Iterator[Tensor], matrix: Tensor) -> Self:
        """The same inverse over other tensors: those of `tensors()`, in its order, and F."""
        # Not dataclasses.replace, which takes as long as a small backward.
        result = object.__new__(type(self))
        fields = vars(result)
        for name, value in vars(self).items():
            if isinstance(value, PseudoInverse):
                fields[name] = value.rebuilt(tensors, matrix)
            elif isinstance(value, Tensor):
                fields[name] = matrix if name == _FACTORED_MATRIX else next(tensors)
            else:
                fields[name] = value
        return result


class Nonsingular(PseudoInverse):
    """F⁻¹ of square matrices: every vector is its own range coordinates.

    The first of `tensors()` has the shape of F, if neither `rank` nor `dense` is overridden.
    """

    full_column_rank = True
    full_row_rank = True

    @property
    def rank(self) -> Tensor:
        return full_rank(next(self.tensors()))

    def dense(self) -> Tensor:
        one = next(self.tensors())
        identity = torch.eye(one.shape[-1], dtype=one.dtype, device=one.device)
        return self.solve(identity.expand(one.shape))

    def to_range(self, b: Tensor) -> Tensor:
        return b

    def from_range(self, c: Tensor) -> Tensor:
        return c


def full_rank(matrix: Tensor) -> Tensor:
    """The number of columns as the rank of each matrix: int64, of the batch shape."""
    *batch, _, n = matrix.shape
    return torch.full(batch, n, dtype=torch.int64, device=matrix.device)


@dataclasses.dataclass(frozen=True, eq=False)
class _Adjoint(PseudoInverse):
    """(Fᴴ)⁺ over the factors of F⁺: Fᴴ has the domain of F for its range."""

    inner: PseudoInverse
    full_column_rank: bool
    full_row_rank: bool

    @property
    def rank(self) -> Tensor:
        return self.inner.rank

    @property
    def singular_values(self) -> Tensor | None:
        return self.inner.singular_values

    def to_range(self, b: Tensor) -> Tensor:
        return b if self.full_row_rank else b - self.inner.null_complement(b)

    def from_range(self, c: Tensor) -> Tensor:
        return c

    def solve(self, c: Tensor) -> Tensor:
        return self.inner.apply_adjoint(c)

    def solve_adjoint(self, x: Tensor) -> Tensor:
        return self.inner.apply(x)

    def null_complement(self, x: Tensor) -> Tensor:
        return self.inner.range_complement(x)

    def dense(self) -> Tensor:
        return self.inner.dense().mH

    @property
    def adjoint(self) -> PseudoInverse:
        return self.inner

    def rebuilt(self, tensors: Iterator[Tensor], matrix: Tensor) -> Self:
        return dataclasses.replace(self, inner=self.inner.rebuilt(tensors, matrix.mH))
