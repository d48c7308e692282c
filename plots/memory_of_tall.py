"""Peak memory of the backward for tall matrices, and the wall that m × m arrays are."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.recommendation import size

TALL = 4
"""A matrix is tall from this many times as many rows as columns."""

BYTES = {"float32": 4, "float64": 8, "complex64": 8, "complex128": 16}


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation; the grey lines are the matrix itself and two m × m arrays.

    Raises:
        NotDrawableError: no memory of tall matrices was measured.
    """
    rows = rows[rows["log10_cond"].isna() & rows["peak_bytes"].gt(0) & ~rows["is_peer"]]
    rows = rows[rows["m"].ge(TALL * rows["n"]) & rows["rhs"].eq(1) & rows["rank"].isna()]
    rows = rows[rows["batch"].eq(0)]
    if rows.empty:
        raise style.NotDrawableError(f"no memory was measured of a matrix with m ≥ {TALL} n")
    dtype = style.most_frequent(rows, "dtype", "float64")
    rows = rows[rows["dtype"].eq(dtype)]
    device = style.most_frequent(rows, "device", "cpu")
    rows = rows[rows["device"].eq(device)]
    operations = sorted(rows["operation"].unique())
    figure, axes = style.panels(len(operations), columns=2, width=5.6, height=4.4, share=True)
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], BYTES[dtype])
        ax.set_title(operation)
    style.widen(axes[0])
    style.power_of_two_ticks(axes[0], rows["m"].astype(float))
    style.in_units(axes[0].yaxis, size)
    for ax in axes[::2]:
        ax.set_ylabel("peak above the graph")
    handles = style.key(style.in_order(rows["strategy"]))
    handles += [style.guide("two m × m", "--"), style.guide("one m × n")]
    title = f"Memory of one backward, tall {dtype} matrices on {device}"
    note = (
        "two m × m: the arrays that PyTorch's own pinv and lstsq make; one m × n: the matrix itself"
    )
    return style.finish(figure, title, rows, handles, note)


def _panel(ax: Axes, rows: pd.DataFrame, itemsize: int) -> None:
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)].sort_values(["m", "n"])
        ax.plot(mine["m"].astype(float), mine["peak_bytes"], **look)
    cases = rows.drop_duplicates(["m", "n"]).sort_values(["m", "n"])
    m, n = cases["m"].astype(float), cases["n"].astype(float)
    for values, line in ((2 * m * m * itemsize, "--"), (m * n * itemsize, ":")):
        ax.plot(m, values, color=style.GUIDE, ls=line, lw=1.5, marker="_", ms=30, mew=2, zorder=1)
    ax.set(xscale="log", yscale="log", xlabel="rows m")
