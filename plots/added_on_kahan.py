"""What the backward of LU adds to the error by itself, on Kahan's matrix."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from plots import style


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """Left the error against the exact gradient at A, right what is added to the stored factors'.

    Args:
        rows: with columns `n`, `strategy`, `error` and `added_error`.
    """
    figure, axes = style.panels(2, share=True)
    names = style.in_order(rows["strategy"])
    titles = {"error": "against the gradient at A", "added_error": "against that at the stored LU"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        for name, look in style.nested(names).items():
            mine = rows[rows["strategy"].eq(name)]
            ax.plot(mine["n"].astype(int), mine[column], **look)
        ax.set(yscale="log", xlabel="rows and columns n", title=title)
    axes[0].set_ylabel("relative error of gradient")
    return style.finish(figure, "lu_factor of Kahan's matrix, float64", rows, style.key(names))
