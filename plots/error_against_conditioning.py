"""Error of the gradient against the condition number, beside the κ u that one has to expect."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.selection.rows import UNIT_ROUNDOFF


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """One panel an operation and dtype. Above 1 no digit of the gradient is right.

    Raises:
        NotDrawableError: the suites that vary the condition number were not run.
    """
    rows = rows[rows["log10_cond"].notna() & rows["error"].notna() & ~rows["is_peer"]]
    rows = _one_shape(rows[rows["matrix"].eq("")])
    if rows.empty:
        raise style.NotDrawableError("no error was measured at given condition numbers")
    groups = list(rows.groupby(["dtype", "operation"], sort=True))
    figure, axes = style.panels(len(groups), share=True)
    several = rows["dtype"].nunique() > 1
    for ax, ((dtype, operation), panel) in zip(axes, groups, strict=True):
        _panel(ax, panel, str(dtype))
        ax.set_title(f"{operation}, {dtype}" if several else f"{operation}")
    for ax in axes[::3]:
        ax.set_ylabel("relative error of gradient")
    dtypes = ", ".join(sorted(rows["dtype"].unique()))
    handles = [*style.key(style.in_order(rows["strategy"])), style.guide("κ u")]
    note = (
        "u: unit roundoff of the dtype. A line that ends: beyond it the strategy refuses the matrix"
    )
    return style.finish(figure, f"Error against condition number, {dtypes}", rows, handles, note)


def _one_shape(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every operation, the shape at which most condition numbers were tried."""
    tried = rows.groupby(["operation", "m", "n"])["log10_cond"].nunique()
    best = tried.sort_values().groupby("operation").tail(1).reset_index()
    return rows.merge(best[["operation", "m", "n"]])


def _panel(ax: Axes, rows: pd.DataFrame, dtype: str) -> None:
    for name, look in style.nested(style.in_order(rows["strategy"])).items():
        mine = rows[rows["strategy"].eq(name)].sort_values("log10_cond")
        ax.plot(10 ** mine["log10_cond"], mine["error"], **look)
    powers = np.array([rows["log10_cond"].min(), rows["log10_cond"].max()])
    ax.plot(10**powers, UNIT_ROUNDOFF[dtype] * 10**powers, color=style.GUIDE, ls=":", zorder=1)
    if rows["error"].max() > 1:
        ax.axhline(1, color=style.GUIDE, lw=1)
    ax.set(xscale="log", yscale="log", xlabel="condition number κ")
