"""Which measured cases are nearest to one that was not measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from strategies.policy import NEIGHBOURS, Cell, Point, position, ranking
from strategies.selection.asv_files import parse_shape
from strategies.selection.policy_building import entry_of
from strategies.selection.rows import CELL


@dataclass(frozen=True)
class Question:
    """A case for which a strategy is wanted; None stands for any.

    Attributes:
        operation: a name of `torch.linalg`.
        shape: "4096x32", with " k=16" for sixteen right-hand sides, " rank=8" for that rank.
        batch: number of matrices; 0 is one matrix.
        dtype: "float64".
        device: "cpu", "cuda:0".
    """

    operation: str | None = None
    shape: str | None = None
    batch: int = 0
    dtype: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.shape is not None:
            parse_shape(self.shape)


def matching(rows: pd.DataFrame, question: Question) -> pd.DataFrame:
    """The rows of the operation, dtype and device asked for.

    Raises:
        ValueError: there are none; the message says what was measured instead.
    """
    for column in ("operation", "dtype", "device"):
        asked = getattr(question, column)
        if asked is None:
            continue
        found = rows[rows[column] == asked]
        if found.empty:
            measured = ", ".join(sorted(rows[column].unique()))
            raise ValueError(f"nothing was measured for {column} {asked}; there is {measured}")
        rows = found
    return rows


def nearest_cells(
    rows: pd.DataFrame, question: Question, count: int = NEIGHBOURS
) -> list[pd.DataFrame]:
    """The measured cells nearest to the question's shape, nearest first.

    Nearness is that of the policy: the Euclidean distance of `strategies.policy.position`s. Full
    rank and deficient rank do not mix. The column `distance` is added.

    Raises:
        ValueError: no cell is of the operation, dtype, device and kind of rank asked for.
    """
    if question.shape is None:
        raise ValueError("a shape is needed to find the nearest cells")
    shape = parse_shape(question.shape)
    rows = matching(rows, question)
    deficient = shape["rank"] is not None
    rows = rows[rows["rank"].notna() == deficient]
    if rows.empty:
        kind = "rank-deficient" if deficient else "full-rank"
        raise ValueError(f"no {kind} matrix was measured for {question.operation}")
    asked = _position(question)
    measured = rows[["m", "n", "rhs", "batch"]].to_numpy(dtype=int)
    rows = rows.assign(distance=[math.dist(position(*sizes), asked) for sizes in measured])
    cells = [cell for _, cell in rows.groupby(["machine", *CELL], dropna=False, sort=False)]
    return sorted(cells, key=lambda cell: float(cell["distance"].iloc[0]))[:count]


def answer(cells: list[pd.DataFrame], question: Question) -> tuple[str, ...]:
    """What these judged cells say between them, the best strategy first, as a policy would.

    Args:
        cells: as `nearest_cells` gives them.
        question: with a shape.

    Returns:
        Names; none if no strategy is eligible in any of the cells.
    """
    decided = [Cell.of(entry_of(cell)) for cell in cells if cell["chosen"].any()]
    return ranking(decided, _position(question)) if decided else ()


def _position(question: Question) -> Point:
    m, n, rhs = (parse_shape(question.shape or "")[name] or 1 for name in ("m", "n", "rhs"))
    return position(m, n, rhs, question.batch)
