"""Error of the gradient against the size of the matrix, at one condition number."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.rows import UNIT_ROUNDOFF


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """One panel an operation: matrices of full rank with κ = 10, square or tall.

    Raises:
        NotDrawableError: the suites that vary the size at κ = 10 were not run.
    """
    rows = rows[rows["log10_cond"].eq(1) & rows["matrix"].eq("") & rows["error"].gt(0)]
    rows = rows[~rows["is_peer"]]
    if rows[["m", "n"]].drop_duplicates().shape[0] < 2:
        raise style.NotDrawableError("errors at κ = 10 were not measured for several sizes")
    dtype = style.most_frequent(rows, "dtype", "float64")
    rows = rows[rows["dtype"].eq(dtype)]
    rows = rows.assign(size=style.equivalent_size(rows))
    operations = sorted(rows["operation"].unique())
    figure, axes = style.panels(len(operations), share=True)
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], dtype)
        ax.set_title(operation)
    for ax in axes[::3]:
        ax.set_ylabel("relative error of gradient")
    style.power_of_two_ticks(axes[0], rows["size"])
    handles = [*style.key(style.in_order(rows["strategy"])), style.guide("κ u")]
    note = "size: ∛(m·n·min(m, n)), which is n if m = n. u: unit roundoff"
    return style.finish(figure, f"Error against size at κ = 10, {dtype}", rows, handles, note)


def _panel(ax: Axes, rows: pd.DataFrame, dtype: str) -> None:
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)].sort_values("size")
        ax.plot(mine["size"], mine["error"], **look)
    ax.axhline(10 * UNIT_ROUNDOFF[dtype], color=style.GUIDE, ls=":", lw=1.5)
    shape = (
        "m = n"
        if rows["m"].eq(rows["n"]).all()
        else f"m = {rows['m'].iloc[0] // rows['n'].iloc[0]} n"
    )
    ax.set(xscale="log", yscale="log", xlabel=f"size, {shape}")
