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
    handles = style.key(style.in_order(rows["strategy"]))
    return style.finish(figure, f"Error against condition number, {dtypes}", rows, handles)


def _one_shape(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every operation, the shape at which most condition numbers were tried."""
    tried = rows.groupby(["operation", "m", "n"])["log10_cond"].nunique()
    best = tried.sort_values().groupby("operation").tail(1).reset_index()
    return rows.merge(best[["operation", "m", "n"]])


def _panel(ax: Axes, rows: pd.DataFrame, dtype: str) -> None:
    names = style.in_order(rows["strategy"])
    for rank, name in enumerate(names):
        mine = rows[rows["strategy"].eq(name)].sort_values("log10_cond")
        # Strategies often agree to the digit: larger open markers show around smaller ones.
        ax.plot(
            10 ** mine["log10_cond"],
            mine["error"],
            mfc="none",
            mew=1.8,
            markersize=4 + 2 * (len(names) - rank),
            **style.look(name),
        )
    powers = np.array([rows["log10_cond"].min(), rows["log10_cond"].max()])
    ax.plot(10**powers, UNIT_ROUNDOFF[dtype] * 10**powers, color=style.GUIDE, ls=":", zorder=1)
    ax.annotate(
        "κ u",
        (10 ** powers[1], UNIT_ROUNDOFF[dtype] * 10 ** powers[1]),
        xytext=(-4, 8),
        textcoords="offset points",
        color=style.GUIDE,
        ha="right",
    )
    if rows["error"].max() > 1:
        ax.axhline(1, color=style.GUIDE, lw=1)
    ax.set(xscale="log", yscale="log", xlabel="condition number κ")
