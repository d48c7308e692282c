"""Least squares in single precision: the gradient's error for right-hand sides in and off the range."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from plots import style


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """One panel a kind of right-hand side, κ across.

    Args:
        rows: with columns `rhs_kind`, `log10_cond`, `strategy` and `error`.
    """
    figure, axes = style.panels(rows["rhs_kind"].nunique(), share=True)
    names = style.in_order(rows["strategy"])
    for ax, (kind, panel) in zip(axes, rows.groupby("rhs_kind", sort=False), strict=True):
        for rank, name in enumerate(names):
            mine = panel[panel["strategy"].eq(name)]
            look = style.look(name) | {"mfc": "none", "mew": 1.8}
            size = 4 + 1.6 * (len(names) - rank)
            ax.plot(10 ** mine["log10_cond"], mine["error"], markersize=size, **look)
        ax.axhline(1, color=style.GUIDE, lw=1)
        ax.set(xscale="log", yscale="log", xlabel="condition number κ", title=kind)
    axes[0].set_ylabel("relative error of gradient")
    return style.finish(figure, "lstsq 80x10, float32", rows, style.key(names))
