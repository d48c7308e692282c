"""Peak memory of the backward for tall matrices, and the wall that m × m arrays are."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.text import size

TALL = 4
"""A matrix is tall from this many times as many rows as columns."""


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation; the grey lines are the matrix itself and two m × m arrays."""
    rows = rows[rows["shows"].isin(["time", "condition"]) & rows["kappa"].eq(10)]
    rows = rows.query(f"m >= {TALL} * n and batch == 0 and rhs == 1 and peak_bytes > 0")
    rows = rows[rows.groupby("operation")["m"].transform("nunique").gt(1)]
    problem = f"no operation's memory was measured at two matrices with m ≥ {TALL} n"
    rows = style.usual(rows, problem).drop_duplicates(["operation", "m", "n", "strategy"])
    title = f"Memory of one backward, tall matrices, {style.setting(rows)}"
    note = "two m × m: the arrays that PyTorch's own pinv and lstsq make; m × n: the matrix itself"
    figure = style.figure(rows, _panel, title, note, ylabel="peak above the graph", share="y")
    style.widen(figure.axes[0].yaxis)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    style.curves(ax, rows, "m", "peak_bytes", ls="")
    rows = rows.sort_values("m")
    m, n, itemsize = rows["m"].astype(float), rows["n"], np.dtype(rows["dtype"].iloc[0]).itemsize
    ax.plot(m, 2 * m * m * itemsize, ls="--", label="two m × m", **style.GUIDE)
    guide = style.GUIDE | {"ls": "", "marker": "_", "ms": 30, "mew": 2}
    ax.plot(m, m * n * itemsize, label="m × n", **guide)
    ax.set(yscale="log", xlabel="rows m")
    style.powers_of_two(ax)
    style.in_units(ax.yaxis, size)
