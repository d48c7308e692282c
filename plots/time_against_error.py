"""Time against error in the largest case of every operation, with the Pareto front."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.recommendation import case_text, seconds
from strategies.selection.rows import CELL


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation; on the line lie the strategies that no other beats in both.

    Raises:
        NotDrawableError: no case has both times and errors of two strategies.
    """
    rows = rows[rows["log10_cond"].isna() & rows["backward_seconds"].notna() & ~rows["is_peer"]]
    rows = rows[rows["error"].gt(0)]
    panels = [
        largest
        for _, operation in rows.groupby("operation", sort=True)
        if not (largest := _largest(operation)).empty
    ]
    if not panels:
        raise style.NotDrawableError("no case has times and errors of two strategies")
    figure, axes = style.panels(len(panels))
    for ax, panel in zip(axes, panels, strict=True):
        _panel(ax, panel)
    for ax in axes[::3]:
        ax.set_ylabel("time of one backward")
    shown = pd.concat(panels)
    handles = style.key(style.in_order(shown["strategy"]), ls="")
    handles.append(style.guide("Pareto front", "-"))
    title = "Time against error, largest case of each operation"
    note = "Pareto front: no other strategy is both faster and more accurate"
    return style.finish(figure, title, shown, handles, note)


def _largest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the case with the most work among those with two strategies or more."""
    rows = rows[rows["dtype"].eq(style.most_frequent(rows, "dtype", "float64"))]
    work = rows["batch"].clip(lower=1).astype(float) * style.equivalent_size(rows) ** 3
    cells = rows.groupby(CELL, dropna=False)["strategy"]
    work = work[cells.transform("size") > 1]
    if work.empty:
        return rows.head(0)
    cell_of_row = cells.ngroup()
    return rows[cell_of_row == cell_of_row.loc[work.nlargest(1).index].iloc[0]]


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    ordered = rows.sort_values(["backward_seconds", "error"])
    front = ordered[ordered["error"] < ordered["error"].cummin().shift(fill_value=float("inf"))]
    ax.plot(
        front["error"],
        front["backward_seconds"],
        color=style.GUIDE,
        lw=1.5,
        drawstyle="steps-pre",
        zorder=1,
    )
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)]
        ax.plot(mine["error"], mine["backward_seconds"], ls="", **look)
    first = rows.iloc[0]
    title = f"{first['operation']} {case_text(first)}\n{first['dtype']}, {first['device']}"
    ax.set(xscale="log", yscale="log", title=title, xlabel="relative error of gradient")
    style.widen(ax)
    style.in_units(ax.yaxis, seconds)
