"""Which measured cases are nearest to one that was not measured."""

import math
from collections.abc import Sequence

from strategies.measuring.case import Case
from strategies.policy.schema import NEIGHBOURS, ranking
from strategies.selection.policies import entry_of, position_of
from strategies.selection.verdicts import JudgedCell


def matching(cells: Sequence[JudgedCell], **columns: str | None) -> list[JudgedCell]:
    """The cells whose cases have these columns if given, or a ValueError that says what was measured."""
    found = list(cells)
    for name, asked in columns.items():
        if asked is not None:
            measured = ", ".join(sorted({str(cell.case.columns()[name]) for cell in found}))
            found = [cell for cell in found if cell.case.columns()[name] == asked]
            if not found:
                raise ValueError(f"nothing was measured for {name} {asked}; there is {measured}")
    return found


def nearest_cells(cells: Sequence[JudgedCell], asked: Case) -> list[JudgedCell]:
    """The cells of a case's operation and kind of rank that a policy would ask, nearest first."""
    deficient = asked.rank is not None
    of_operation = matching(cells, operation=asked.operation)
    found = [cell for cell in of_operation if (cell.case.rank is not None) == deficient]
    if not found:
        kind = "rank-deficient" if deficient else "full-rank"
        raise ValueError(f"no {kind} matrix was measured for {asked.operation}")
    return sorted(found, key=lambda cell: distance(cell.case, asked))[:NEIGHBOURS]


def distance(measured: Case, asked: Case) -> float:
    """How far apart two cases are: the Euclidean distance of their `position`s in a policy."""
    return math.dist(position_of(measured), position_of(asked))


def answer(cells: Sequence[JudgedCell], asked: Case) -> tuple[str, ...]:
    """What `nearest_cells` say between them, the best strategy first, as a policy would."""
    decided = [entry_of(cell) for cell in cells if cell.chosen]
    return ranking(decided, position_of(asked)) if decided else ()
