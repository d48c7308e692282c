"""`python -m benchmarks.slice GRID`: the cells of asv that `make bench` records, as a regular expression.

They are those that give every operation a graph in a few minutes: the backward of some single
matrices of moderate size in double precision on the CPU, by all strategies.
"""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from strategies import operations
from strategies.cli.common import reports_errors
from strategies.measuring.grid_cases import case_of
from strategies.operations.grids import GRIDS

MOST_WORK = 2**24
"""Multiplications, m n min(m, n), of the largest matrix, unless a grid has larger ones only."""

MOST_SHAPES = 3
"""Of an operation."""


def pattern(grid: str) -> str:
    """A regular expression for `asv run --bench`; ValueError if there is no such grid."""
    if grid not in GRIDS:
        raise ValueError(f"no grid is named {grid!r}; there is {', '.join(GRIDS)}")
    return "|".join(
        rf"^{name}\.Single\.time_backward\(.*, '({'|'.join(map(re.escape, _shapes(name, grid)))})', 0, "
        "'float64', 'cpu'"
        for name in operations.measured()
    )


def _shapes(operation: str, grid: str) -> Sequence[str]:
    """The largest of moderate size, from small to large."""
    shapes = operations.get(operation).cells[grid].single.shapes.split(", ")
    work = {each: case_of(operation, each, 0, "float64", "cpu").work for each in shapes}
    ordered = sorted(shapes, key=work.__getitem__)
    return [each for each in ordered if work[each] <= MOST_WORK][-MOST_SHAPES:] or ordered[:1]


@reports_errors
def main(grid: Annotated[str, typer.Argument(help=f"One of {', '.join(GRIDS)}.")]) -> None:
    """Print the expression for a grid."""
    print(pattern(grid))


if __name__ == "__main__":
    typer.run(main)
