"""The cases of an oracle set, before anything is known of them but their inputs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from strategies import operations
from strategies.exact.rank import rank_profile
from strategies.formulas.domains import GENERAL, POSITIVE_DEFINITE
from strategies.operations import Operation
from strategies.oracle import matrices
from strategies.oracle.matrices import Array, Source

_ATTEMPTS = 16  # how often a case is drawn again where it has no certain rank or pivots

_LARGEST_SIDE = 4
_BATCH = 3


@dataclass(frozen=True)
class Draw:
    """One case: an operation at exactly these numbers, arrays with a leading dimension in a batch.

    Attributes:
        name: operation/kind/number, the kind one of `KINDS`.
        ranks: of A, of every matrix of the batch.
        orders: where in A the pivoted rows come from, of every matrix, if the operation pivots.
        about: what the matrices are, in words.
    """

    name: str
    operation: str
    kind: str
    dtype: str
    inputs: tuple[Array, ...]
    cotangents: tuple[Array, ...]
    tangents: tuple[Array, ...]
    ranks: tuple[int, ...]
    orders: tuple[NDArray[np.int64], ...] | None
    about: str


@dataclass
class _Place:
    """Where a matrix is drawn: for what, from what, of what shape, with how many columns beside it."""

    record: Operation
    source: Source
    shape: tuple[int, int]
    columns: int


@dataclass
class _Matrix:
    """Of one matrix, what is there of a draw."""

    inputs: list[Array]
    rank: int
    order: NDArray[np.int64] | None = None
    cotangents: list[Array] = field(default_factory=list)
    tangents: list[Array] = field(default_factory=list)
    about: list[str] = field(default_factory=list)


def candidates(operation: str, kind: str, number: int, seed: int) -> Iterator[Draw]:
    """For one case, draws of which the first that can be judged counts."""
    found = (draw(operation, kind, number, (seed, attempt)) for attempt in range(_ATTEMPTS))
    return filter(None, found)


def draw(operation: str, kind: str, number: int, seed: tuple[int, int]) -> Draw | None:
    """Draws a case; None if its rank is another one or its pivots are close."""
    record = operations.get(operation)
    place = operations.names().index(operation), list(KINDS).index(kind), number
    is_single = number % 4 == 3
    is_complex = kind == "complex" or (kind == "batched" and number % 4 == 2)
    real, complex_ = ("float32", "complex64") if is_single else ("float64", "complex128")
    source = Source(np.random.default_rng([*seed, *place]), is_complex, 24 if is_single else 53)
    m, n = (source.between(1, _LARGEST_SIDE) for _ in range(2))
    shape = (n, n) if record.square else (m, n)
    at = _Place(record, source, shape, source.between(1, 2))
    is_batch = kind == "batched"
    parts = [KINDS[kind](at) for _ in range(_BATCH if is_batch else 1)]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None

    def stacked(*groups: list[Array]) -> tuple[Array, ...]:
        arrays = [np.stack(each) for each in zip(*groups, strict=True)]
        return tuple(_typed(each if is_batch else each[0], source.digits) for each in arrays)

    names = "inputs", "cotangents", "tangents"
    return Draw(
        **{name: stacked(*(vars(part)[name] for part in found)) for name in names},
        name=f"{operation}/{kind}/{number}",
        operation=operation,
        kind=kind,
        dtype=complex_ if is_complex else real,
        ranks=tuple(part.rank for part in found),
        orders=tuple(p.order for p in found if p.order is not None) if record.pivoted else None,
        about="; ".join(dict.fromkeys(", ".join(part.about) for part in found)),
    )


_Kind = Callable[[_Place], _Matrix | None]


def _of_full_rank(recipes: Mapping[str, matrices.Recipe], *, is_scaled: bool = False) -> _Kind:
    def drawn(at: _Place) -> _Matrix | None:
        name = str(at.source.rng.choice(list(recipes)))
        matrix = _member(at.record, recipes[name](at.source, *at.shape), at.source.digits)
        power = 0
        if is_scaled:
            # Second derivatives stay in range; a determinant has the n-th power of the factor.
            most = (1000 if at.source.digits == 53 else 120) // (4 * at.shape[1])
            power = at.source.between(-most, most)
        return _completed(at, matrix, min(at.shape), name, power)

    return drawn


def _deficient(at: _Place) -> _Matrix | None:
    if at.record.needs_full_rank:
        return None
    rank = at.source.between(0, min(at.shape) - 1)
    matrix = matrices.product_of_rank(at.source, *at.shape, rank)
    return _completed(at, matrix, rank, f"rank {rank}")


def _of_any_rank(at: _Place) -> _Matrix | None:
    has_deficient = not (at.record.needs_full_rank or at.record.pivoted)
    is_deficient = has_deficient and at.source.between(0, 2) == 0
    return (_deficient if is_deficient else _of_full_rank(_ANY))(at)


def _member(record: Operation, matrix: Array, digits: int) -> Array:
    """A member of the operation's domain made of any matrix."""
    if record.domain is GENERAL:
        return matrix
    if record.domain is POSITIVE_DEFINITE:
        return matrices.product(matrix, matrix.conj().T)
    diagonal = abs(np.diagonal(matrix).real)
    return np.tril(matrix, -1) + np.diag(np.where(diagonal == 0, 2.0 ** (-digits // 4), diagonal))


def _completed(at: _Place, matrix: Array, rank: int, about: str, power: int = 0) -> _Matrix | None:
    """The matrix in the precision of the case, with all that belongs to it, times 2^power."""
    record, source = at.record, at.source
    matrix = _rounded(matrix, source)
    if len(rank_profile(matrix)[0]) != rank:
        return None
    found = _Matrix([matrix], rank, about=[about])
    if record.pivoted:
        found.order = matrices.clear_order(matrix, rank)
        if found.order is None:
            return None
    if record.arity == 2:
        said, side = matrices.right_side(source, matrix, at.columns)
        found.inputs.append(_rounded(side, source))
        found.about.append(said)
    shapes = record.output_shapes(*(each.shape for each in found.inputs))
    for shape in shapes:
        said, side = matrices.cotangent(source, matrix, shape)
        found.cotangents.append(_judged_part(record, side, rank, found))
        found.about.append(said)
    if record.name == "slogdet":
        # log|det| is real, and the sign of a real determinant is no differentiable output.
        found.cotangents = [*found.cotangents[: int(source.is_complex)], found.cotangents[-1].real]
    if rank < min(matrix.shape) and record.truncates:
        found.tangents.append(matrices.tangent_at_rank(source, matrix))
    else:
        said, moved = matrices.tangent(source, matrix)
        found.tangents.append(record.domain.part(torch.from_numpy(_rounded(moved, source))).numpy())
        found.about.append(said)
    found.tangents += [_rounded(matrices.plain(source, *b.shape), source) for b in found.inputs[1:]]
    if power:
        found.about.append(f"times 2^{power}")
        found.inputs = [each * 2.0**power for each in found.inputs]
        found.tangents = [each * 2.0**power for each in found.tangents]
        # Those of determinants, which are numbers, are not scaled.
        found.cotangents = [x * 2.0**power if x.ndim == 2 else x for x in found.cotangents]
    return found


def _judged_part(record: Operation, side: Array, rank: int, found: _Matrix) -> Array:
    """Of a cotangent of LU factors at deficient rank what no pivot that is roundoff touches."""
    if not record.pivoted or rank == min(found.inputs[0].shape):
        return side
    kept = np.zeros_like(side)
    kept[:rank] = side[:rank]
    if record.name == "lu" and found.cotangents:  # of U
        return kept
    # Rows of L below the rank are in any order; what is right of and below the leading block is roundoff.
    kept[rank:, :rank] = side[rank : rank + 1, :rank]
    if record.name == "lu":
        kept[:, rank:] = 0
    return kept


def _typed(array: Array, digits: int) -> Array:
    single = np.complex64 if np.iscomplexobj(array) else np.float32
    return array.astype(single) if digits == 24 else array


def _rounded(array: Array, source: Source) -> Array:
    return _typed(array, source.digits).astype(array.dtype)


_ANY = {**matrices.PLAIN, **matrices.HARD}

KINDS: dict[str, _Kind] = {
    "plain": _of_full_rank(matrices.PLAIN),
    "hard": _of_full_rank(matrices.HARD),
    "deficient": _deficient,
    "scaled": _of_full_rank({**matrices.PLAIN, **matrices.GRADED}, is_scaled=True),
    "complex": _of_full_rank(_ANY),
    "batched": _of_any_rank,
}
"""Kinds of cases, each with what draws one matrix of it."""
