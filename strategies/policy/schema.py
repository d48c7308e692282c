"""The policy file: what it says of every measured case, and how it answers for the others.

It is JSON, described by `Policy`; `strategies.policy.nearest_machine` says which of its machines answers.

A measured case is answered by its cell. Any other is answered by the nearest cells (see `ranking`) of
the same operation, kind of device, dtype and kind of rank. A dtype that was not measured borrows the
cells of the next of `DTYPES_IN_ORDER`. A kind of device that was not measured gets the operation's
single default, and an operation that was not measured no answer.
"""

import functools
import heapq
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from strategies.files.documents import Document
from strategies.policy.validators import Validators

DTYPES_IN_ORDER = {
    "float32": ("float32", "float64", "complex64", "complex128"),
    "float64": ("float64", "float32", "complex128", "complex64"),
    "complex64": ("complex64", "complex128", "float32", "float64"),
    "complex128": ("complex128", "complex64", "float64", "float32"),
}
"""Where each dtype looks for cells: the same field first, then the same precision."""

NEIGHBOURS = 4
"""Cells that answer for a case between them."""

LIMIT = 100.0
"""The largest stability ratio of a strategy that may be used: see `strategies.accuracy.stability`."""

WORST_RATIO = 1e30
"""Stands for larger stability ratios, infinite ones included, which JSON cannot hold."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Ratio = Annotated[float, msgspec.Meta(gt=0)]
Point = tuple[float, ...]
PolicyKey = tuple[str, int, int, int, int, str, str]
"""Operation, m, n, columns of B, batch (0 is one matrix), dtype, device with or without an index."""


def position(m: int, n: int, rhs: int = 1, batch: int = 0) -> Point:
    """Where a case lies: log₂ of its sizes; nothing and one of something are the same place."""
    return tuple(math.log2(max(size, 1)) for size in (m, n, rhs, batch))


class Cell(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A measured case, its sizes as in a `PolicyKey`, and what to use in it.

    Attributes:
        rank: None is full rank.
        ties: the strategies that could not be told from the one to use.
        times: of all eligible strategies, over that of the fastest.
    """

    m: Count
    n: Count
    rhs: Count
    batch: Count
    rank: Count | None
    use: str
    ties: tuple[str, ...]
    times: dict[str, Ratio]

    @functools.cached_property
    def position(self) -> Point:
        return position(self.m, self.n, self.rhs, self.batch)

    @property
    def names(self) -> tuple[str, ...]:
        """The eligible strategies, the one to use first, then from fast to slow."""
        others = sorted(self.times.keys() - {self.use}, key=lambda name: (self.times[name], name))
        return (self.use, *others)


Cells = dict[str, dict[str, tuple[Cell, ...]]]
"""By operation, or by kind of device, and by dtype."""


def _require_dtypes(cells: Cells) -> None:
    """ValueError, which a file is then damaged by, where cells are of a dtype that is not known."""
    for by_dtype in cells.values():
        if unknown := by_dtype.keys() - DTYPES_IN_ORDER.keys():
            raise ValueError(f"no dtype is {min(unknown)!r}")


def in_words(stability: float) -> str:
    """A stability ratio with two digits, or ∞.

    Example:
        >>> in_words(2.5e9), in_words(WORST_RATIO)
        ('2.5e+09', '∞')
    """
    return "∞" if stability >= WORST_RATIO else f"{stability:.2g}"


class Evidence(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a strategy's stability for an operation, by hard cases.

    Attributes:
        judged: how many compared its results and gradients with exact ones.
        refused: in how many it raised an error instead.
        worst: the largest stability ratio, of results and gradients, normwise and by columns.
        case: where that was, as `Case.parse` reads it; empty where nothing was judged.
    """

    judged: Count
    refused: Count
    worst: Annotated[float, msgspec.Meta(ge=0)]
    case: str

    @property
    def is_stable(self) -> bool:
        """Whether the strategy may be used."""
        return self.judged > 0 and self.worst <= LIMIT

    @property
    def worst_in_words(self) -> str:
        """`worst` with two digits, or ∞."""
        return in_words(self.worst)


class Default(msgspec.Struct, frozen=True):
    """The one strategy of an operation to keep if only one may be kept.

    A strategy's regret in a case is its cost over that of the fastest eligible one.

    Attributes:
        then: the next best, best first.
        mean_regret: the geometric mean; as the worst, over the cases in which it is eligible.
        cells: how many cases have an eligible strategy.
        uncovered: in how many of them it is not eligible.
    """

    strategy: str
    then: tuple[str, ...]
    worst_regret: Ratio
    mean_regret: Ratio
    cells: Count
    uncovered: Count


class OperationPolicy(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a policy says of one operation.

    Attributes:
        full_rank: the single default for matrices of full rank, where some were measured.
        any_rank: the same for matrices of any rank, where deficient ones were measured.
        stability: by strategy; those without evidence may not be used.
        cells: by kind of device and dtype.
    """

    full_rank: Default | None = None
    any_rank: Default | None = None
    stability: dict[str, Evidence] = {}
    cells: Cells

    def __post_init__(self) -> None:
        _require_dtypes(self.cells)

    def allows(self, strategy: str) -> bool:
        """Whether a strategy may be used as far as its stability goes."""
        found = self.stability.get(strategy)
        return found.is_stable if found else not self.stability


class Part(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What was measured on one machine with one number of threads; it holds nowhere else.

    Attributes:
        device: cpu or cuda.
        machine: a `strategies.measuring.machine.Machine`.
        cells: by operation and dtype, of each case its newest measurement.
        stability: by operation and strategy, what a short check on this machine has shown.
    """

    validators: Validators
    device: str
    threads: Annotated[int, msgspec.Meta(ge=1)]
    machine: dict[str, Any]
    cells: Cells
    stability: dict[str, dict[str, Evidence]] = {}

    def __post_init__(self) -> None:
        _require_dtypes(self.cells)

    @property
    def place(self) -> tuple[Validators, str, int]:
        """What two parts differ in."""
        return self.validators, self.device, self.threads

    def over(self, older: "Part") -> "Part":
        """This part, with what an older one of the same place says of other cases."""
        found: dict[str, dict[str, dict[Any, Cell]]] = {}
        for operation, by_dtype in (*older.cells.items(), *self.cells.items()):
            for dtype, cells in by_dtype.items():
                known = found.setdefault(operation, {}).setdefault(dtype, {})
                known |= {(cell.position, cell.rank): cell for cell in cells}
        return msgspec.structs.replace(
            self,
            cells={
                operation: {dtype: tuple(cells.values()) for dtype, cells in by_dtype.items()}
                for operation, by_dtype in sorted(found.items())
            },
            stability={**older.stability, **self.stability},
        )


class Policy(Document, frozen=True, eq=False, kw_only=True):
    """The content of a policy file: what one machine says of operations, and others besides.

    Attributes:
        criteria: a `strategies.selection.eligibility.Criteria`.
        provenance: the `strategies.measuring.machine.Machine` of every run that it rests on.
    """

    format: str = "backward-strategies policy"
    version: int = 4
    criteria: dict[str, Any] = msgspec.field(default_factory=dict)
    provenance: tuple[dict[str, Any], ...] = ()
    operations: dict[str, OperationPolicy]
    others: tuple[Part, ...] = ()

    def of(self, operation: str) -> OperationPolicy:
        """What it says of an operation: nothing, if it does not know it."""
        return self.operations.get(operation, OperationPolicy(cells={}))

    def ranking(self, key: PolicyKey, *, deficient: bool = False) -> tuple[str, ...]:
        """The names of the strategies for a `PolicyKey`, the best first, whether installed or not.

        They are stable, if stability was judged. Matrices that are known to be rank-deficient have
        cells of their own.
        """
        known = self.of(key[0])
        if cells := self.nearest(key, deficient=deficient):
            names = ranking(cells, position(*key[1:5]))
        else:
            default = known.any_rank if deficient else known.full_rank
            names = (default.strategy, *default.then) if default else ()
        return tuple(name for name in names if known.allows(name))

    def nearest(self, key: PolicyKey, *, deficient: bool = False) -> list[Cell]:
        """The measured cells that answer a `PolicyKey`, the nearest first: one, if that is the case."""
        operation, *sizes, dtype, device = key
        by_dtype = self.of(operation).cells.get(device.partition(":")[0], {})
        return closest(answering(by_dtype, dtype, deficient), position(*sizes))


def answering(by_dtype: Mapping[str, Sequence[Cell]], dtype: str, deficient: bool) -> list[Cell]:
    """The cells of a kind of rank that answer for a dtype: its own, or the next dtype's that has some."""
    names = DTYPES_IN_ORDER.get(dtype, ())
    return next(filter(None, (of_rank(by_dtype.get(name, ()), deficient) for name in names)), [])


def of_rank(cells: Iterable[Cell], deficient: bool) -> list[Cell]:
    """The cells of matrices that are known to be rank-deficient, or of the others."""
    return [cell for cell in cells if (cell.rank is not None) == deficient]


def ranking(near: Sequence[Cell], asked: Point) -> tuple[str, ...]:
    """The strategies for a case, the best first, by what the cells nearest to it say of them.

    Those that are not eligible in all of them come last.
    """
    nearest, *_ = closest(near, asked)
    if nearest.position == asked:
        return nearest.names
    costs = interpolated(near, asked)
    best = sorted(costs, key=costs.__getitem__)
    return (*best, *(name for name in nearest.names if name not in costs))


def interpolated(cells: Iterable[Cell], asked: Point) -> dict[str, float]:
    """The logarithms of the times, over the fastest one's, that the nearest cells say of a case.

    They are means weighted by 1 / distance² (Shepard, Proc. 23rd ACM National Conference, 1968), of the
    strategies that are eligible in all of these cells. The times of a cell are those of its own case.
    """
    near = closest(cells, asked)
    weights = [(math.dist(cell.position, asked) or 1.0) ** -2 for cell in near]
    return {
        name: statistics.fmean([math.log(cell.times[name]) for cell in near], weights)
        for name in (near[0].names if near else ())
        if all(name in cell.times for cell in near)
    }


def closest(cells: Iterable[Cell], asked: Point) -> list[Cell]:
    """The cells that answer for a case, the nearest first; a case that was measured has its own alone."""
    near = heapq.nsmallest(NEIGHBOURS, cells, key=lambda cell: math.dist(cell.position, asked))
    return near[:1] if near and near[0].position == asked else near


def rounded(ratio: float) -> float:
    """To four significant digits, as in a policy file."""
    return float(f"{ratio:.4g}")
