"""Errors on the matrices of the gallery, in units of κ u, beside the threshold of LAPACK's tests."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.accuracy.measures import PASS_BELOW


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation, a line a matrix, a marker a strategy."""
    rows = rows.query("shows == 'gallery' and error > 0")
    rows = style.usual(rows, "no error was measured on the matrices of the gallery")
    matrices = sorted(rows["matrix"].unique(), reverse=True)
    ratio = rows["error"] / (rows["kappa"] * rows["roundoff"])
    rows = rows.assign(line=rows["matrix"].map(matrices.index), ratio=ratio)

    def panel(ax: Axes, rows: pd.DataFrame) -> None:
        style.curves(ax, rows, "ratio", "line", ls="")
        ax.axvline(PASS_BELOW, ls=":", label=f"threshold, {PASS_BELOW:g}", **style.GUIDE)
        ax.set(xscale="log", xlabel="relative error / κ u", ylim=(-0.7, len(matrices) - 0.3))
        ax.set_yticks(range(len(matrices)), [matrix.replace("_", " ") for matrix in matrices])

    title = f"Error over the gallery, {rows['dtype'].iloc[0]}"
    note = (
        "κ: condition number; u: unit roundoff; threshold: LAPACK's own tests pass below it. "
        "No marker: the strategy refuses the matrix, or it was not tried"
    )
    return style.figure(rows, panel, title, note, height=lambda _: 1.4 + 0.34 * len(matrices))
