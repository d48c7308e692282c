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
        for name, look in style.nested(names).items():
            mine = panel[panel["strategy"].eq(name)]
            ax.plot(10 ** mine["log10_cond"], mine["error"], **look)
        ax.axhline(1, color=style.GUIDE, lw=1)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="condition number κ",
            title=f"right-hand side: {kind}",
        )
    axes[0].set_ylabel("relative error of gradient")
    note = "Above 1 no digit is right. A line that ends: beyond it the strategy refuses the matrix"
    return style.finish(figure, "Error of lstsq, 80x10 float32", rows, style.key(names), note)
