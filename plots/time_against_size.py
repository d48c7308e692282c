"""Time of the backward against the size of the matrix, and the rate of the fastest one seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.recommendation import seconds


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
    sizes = np.array([rows["size"].min(), rows["size"].max()])
    fastest = rows["backward_seconds"].min()
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], sizes, fastest)
        ax.set_title(operation)
    for ax in axes[::3]:
        ax.set_ylabel("time of one backward")
    style.power_of_two_ticks(axes[0], rows["size"])
    style.in_units(axes[0].yaxis, seconds)
    handles = style.key(style.in_order(rows["strategy"]))
    handles.append(style.guide("best rate"))
    note = (
        "size: ∛(m·n·min(m, n)), which is n if m = n; other shapes stand alone. "
        "Best rate: size³ multiplications\nat the rate of the panel's fastest point"
    )
    title = f"Time of one backward, {dtype} on {device}"
    return style.finish(figure, title, rows, handles, note)


def _panel(ax: Axes, rows: pd.DataFrame, sizes: np.ndarray, fastest: float) -> None:
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)].sort_values("size")
        square = mine["m"].eq(mine["n"])
        for shapes, line in ((square, "-"), (~square, "")):
            ax.plot(mine["size"][shapes], mine["backward_seconds"][shapes], ls=line, **look)
    rate = (rows["size"] ** 3 / rows["backward_seconds"]).max()
    # Far below the fastest of all, the line would only make the panels flat.
    start = max(sizes[0], (rate * fastest) ** (1 / 3))
    shown = np.array([min(start, sizes[1]), sizes[1]])
    ax.plot(shown, shown**3 / rate, color=style.GUIDE, lw=1.5, ls=":", zorder=1)
    ax.set(xscale="log", yscale="log", xlabel="size")
