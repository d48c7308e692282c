"""Time against the size of the matrix, and the rate of the fastest one seen."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.text import seconds

FEWEST = 3
"""Sizes of an operation that make a curve."""


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: single matrices of full rank, square ones joined by lines.

    The grey line is what m n min(m, n) multiplications would take at the best rate of any in the
    panel: it touches the fastest point, and shows which strategies keep that rate.
    """
    rows = rows.query("shows == 'time' and batch == 0 and rhs == 1 and kappa == 10 and seconds > 0")
    rows = rows[rows.groupby("operation")["sizes"].transform("nunique").ge(FEWEST)]
    problem = f"no operation was timed at {FEWEST} sizes of single matrices of full rank"
    rows = style.usual(rows, problem)
    title = f"Time of forward and backward, {style.setting(rows)}"
    note = (
        "size: ∛(m·n·min(m, n)), which is n if m = n; other shapes are the small markers. "
        "Best rate: size³ multiplications at the rate of the panel's fastest point"
    )
    return style.figure(rows, _panel, title, note, ylabel="time, forward and backward")


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    square = rows["m"].eq(rows["n"])
    style.curves(ax, rows[square], "size", "seconds")
    for name, others in rows[~square].groupby("strategy"):
        ax.plot(others["size"], others["seconds"], ls="", ms=4, **style.look(str(name)))
    rate = rows["size"] ** 3 / rows["seconds"]
    size, time = rows.loc[rate.eq(rate.max()), ["size", "seconds"]].iloc[0]
    ax.set(yscale="log", xlabel="size")
    style.powers_of_two(ax)
    style.in_units(ax.yaxis, seconds)
    further = (1.01 * size, 1.01**3 * time)
    ax.axline((size, time), further, ls=":", label="best rate", **style.GUIDE)
