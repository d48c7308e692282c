"""Error of the gradient against the size of the matrix, at the condition number κ = 10."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: single matrices of full rank, square or tall."""
    rows = rows.query("shows == 'condition' and kappa == 10 and error > 0")
    rows = rows[rows.groupby("operation")["sizes"].transform("nunique").gt(1)]
    rows = style.usual(rows, "errors at κ = 10 were not measured for several sizes")
    title = f"Error against size at κ = 10, {rows['dtype'].iloc[0]}"
    note = "size: ∛(m·n·min(m, n)), which is n if m = n. u: unit roundoff"
    figure = style.figure(rows, _panel, title, note, ylabel=style.ERROR, share="y")
    style.widen(figure.axes[0].yaxis)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    first = rows.iloc[0]
    shape = "m = n" if first["m"] == first["n"] else f"m = {first['m'] // first['n']} n"
    style.errors(ax, rows, "size", f"size, {shape}")
    style.powers_of_two(ax)
    ax.axhline(10 * first["roundoff"], ls=":", label="κ u", **style.GUIDE)
