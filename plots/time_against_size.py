"""Time of the backward against the size of the matrix, and the rate of the fastest one seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """One panel an operation: single matrices of full rank, square ones joined by lines.

    The grey line is what a backward would take that did m n min(m, n) multiplications at the best
    rate of any in the panel: it touches the fastest point, and shows who keeps that rate.

    Raises:
        NotDrawableError: no single matrix was timed.
    """
    rows = rows[rows["log10_cond"].isna() & rows["batch"].eq(0) & rows["rank"].isna()]
    rows = rows[rows["backward_seconds"].notna() & rows["rhs"].eq(1) & ~rows["is_peer"]]
    if rows.empty:
        raise style.NotDrawableError("no backward of a single matrix of full rank was timed")
    dtype = style.most_frequent(rows, "dtype", "float64")
    rows = rows[rows["dtype"].eq(dtype)]
    device = style.most_frequent(rows, "device", "cpu")
    rows = rows[rows["device"].eq(device)]
    rows = rows.assign(size=style.equivalent_size(rows))
    operations = sorted(rows["operation"].unique())
    figure, axes = style.panels(len(operations), share=True)
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], operation)
    for ax in axes[::3]:
        ax.set_ylabel("backward (s)")
    style.power_of_two_ticks(axes[0], rows["size"])
    handles = style.key(style.in_order(rows["strategy"]))
    handles.append(style.guide("best rate seen"))
    return style.finish(figure, f"Time of one backward, {dtype} on {device}", rows, handles)


def _panel(ax: Axes, rows: pd.DataFrame, operation: str) -> None:
    for name in style.in_order(rows["strategy"]):
        mine = rows[rows["strategy"].eq(name)].sort_values("size")
        square = mine["m"].eq(mine["n"])
        look = style.look(name)
        ax.plot(mine["size"][square], mine["backward_seconds"][square], **look)
        ax.plot(
            mine["size"][~square],
            mine["backward_seconds"][~square],
            **{**look, "ls": "", "mfc": "white", "mew": 2},
        )
    sizes = np.array([rows["size"].min(), rows["size"].max()])
    rate = (rows["size"] ** 3 / rows["backward_seconds"]).max()
    ax.plot(sizes, sizes**3 / rate, color=style.GUIDE, lw=1.5, ls=":", zorder=1)
    ax.set(xscale="log", yscale="log", title=operation, xlabel="∛(m·n·min(m, n)), open: m ≠ n")
