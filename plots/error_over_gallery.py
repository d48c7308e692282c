"""Errors on the matrices of the gallery, in units of κ u, beside the limit of LAPACK's tests."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.accuracy.measures import PASS_BELOW


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """One panel an operation, one line a matrix, one marker a strategy.

    Raises:
        NotDrawableError: the suites that go over the gallery were not run.
    """
    rows = rows[rows["matrix"].ne("") & rows["test_ratio"].gt(0) & ~rows["is_peer"]]
    if rows.empty:
        raise style.NotDrawableError("no error was measured on the matrices of the gallery")
    dtype = style.most_frequent(rows, "dtype", "float64")
    rows = rows[rows["dtype"].eq(dtype)]
    operations = sorted(rows["operation"].unique())
    matrices = sorted(rows["matrix"].unique(), reverse=True)
    figure, axes = style.panels(len(operations), height=1.4 + 0.34 * len(matrices), share=True)
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], matrices)
        ax.set_title(operation)
    handles = style.key(style.in_order(rows["strategy"]), ls="")
    handles.append(style.guide(f"limit, {PASS_BELOW:g}"))
    note = (
        "u: unit roundoff; limit: LAPACK's own tests pass below it. "
        "A marker is missing where the strategy refuses the matrix"
    )
    return style.finish(figure, f"Error over the gallery, {dtype}", rows, handles, note)


def _panel(ax: Axes, rows: pd.DataFrame, matrices: list[str]) -> None:
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)]
        heights = [matrices.index(matrix) for matrix in mine["matrix"]]
        ax.plot(mine["test_ratio"], heights, ls="", **look)
    ax.axvline(PASS_BELOW, color=style.GUIDE, ls=":", lw=1.5)
    ax.set(xscale="log", xlabel="relative error / κ u", ylim=(-0.7, len(matrices) - 0.3))
    ax.set_yticks(range(len(matrices)), [matrix.replace("_", " ") for matrix in matrices])
