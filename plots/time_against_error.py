"""Time against error in the largest case of every operation, with the Pareto front."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.text import seconds


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation; on the line lie the strategies that no other beats in both."""
    rows = rows.query("shows == 'time' and seconds > 0 and error > 0")
    rows = rows[rows.groupby("case")["strategy"].transform("nunique").gt(1)]
    rows = style.usual(rows, "no case has times and errors of two strategies")
    work = rows["batch"].clip(lower=1) * rows["size"] ** 3
    rows = rows[rows["case"].isin(rows.loc[work.groupby(rows["operation"]).idxmax(), "case"])]
    title = f"Time against error, largest case of each operation, {style.setting(rows)}"
    note = "Pareto front: no other strategy is both faster and more accurate"
    return style.figure(rows, _panel, title, note, ylabel="time, forward and backward", share="")


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    ordered = rows.sort_values(["seconds", "error"])
    front = ordered[ordered["error"] < ordered["error"].cummin().shift(fill_value=float("inf"))]
    ax.step(front["error"], front["seconds"], label="Pareto front", **style.GUIDE)
    style.curves(ax, rows, "error", "seconds", ls="")
    ax.set(xscale="log", yscale="log", xlabel=style.ERROR)
    ax.set_title(f"{ax.get_title()} {rows['sizes'].iloc[0]}")
    style.widen(ax.xaxis, ax.yaxis)
    style.in_units(ax.yaxis, seconds)
