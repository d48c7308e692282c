"""Speed-up over native of every strategy in every case, as a heat map."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.selection.recommendation import case_text
from strategies.selection.rows import CELL

LARGEST_SHOWN = 16.0
"""The colour scale ends at this factor either way; the numbers tell what lies beyond."""


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: strategies down, cases across, from small to large and to batches.

    Raises:
        NotDrawableError: no speed-up was measured.
    """
    rows = rows[rows["log10_cond"].isna() & rows["speedup_over_native"].gt(0) & ~rows["is_peer"]]
    rows = rows[rows["strategy"].ne(BASELINE)]
    if rows.empty:
        raise style.NotDrawableError("no speed-up over native was measured")
    dtype = style.most_frequent(rows, "dtype", "float64")
    rows = rows[rows["dtype"].eq(dtype)]
    device = style.most_frequent(rows, "device", "cpu")
    rows = rows[rows["device"].eq(device)]
    names = style.in_order(rows["strategy"])
    operations = sorted(rows["operation"].unique())
    widest = max(
        rows[rows["operation"].eq(op)].groupby(CELL, dropna=False).ngroups for op in operations
    )
    columns = 1 if widest > 8 else 2
    figure, axes = style.panels(
        len(operations),
        columns=columns,
        width=max(2.6 + 0.75 * widest, 4.6) if columns == 1 else max(6.6, 2.4 + 0.8 * widest),
        height=1.5 + 0.55 * len(names),
    )
    scale = Normalize(-np.log2(LARGEST_SHOWN), np.log2(LARGEST_SHOWN))
    for ax, operation in zip(axes, operations, strict=True):
        _panel(ax, rows[rows["operation"].eq(operation)], names, scale)
        ax.set_title(operation)
    bar = figure.colorbar(ScalarMappable(scale, "PuOr"), ax=axes, shrink=0.7, pad=0.02)
    ticks = [-4, -2, 0, 2, 4]
    bar.set_ticks(ticks, labels=["≤ 1/16", "1/4", "1", "4", "≥ 16"])
    bar.set_label("times as fast as native")
    return style.finish(figure, f"Speed-up over native, {dtype} on {device}", rows)


def _panel(ax: Axes, rows: pd.DataFrame, names: list[str], scale: Normalize) -> None:
    cases = style.sorted_cases(rows)
    labels = [case_text(case) for case in cases]
    values = np.full((len(names), len(labels)), np.nan)
    for _, row in rows.iterrows():
        at = names.index(row["strategy"]), labels.index(case_text(row))
        values[at] = row["speedup_over_native"]
    ax.imshow(np.log2(values), cmap="PuOr", norm=scale, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if np.isnan(value):
            ax.text(j, i, "n/a", ha="center", va="center", fontsize=10, color=style.GUIDE)
        else:
            strong = abs(np.log2(value)) > 0.6 * scale.vmax if scale.vmax else False
            colour = "white" if strong else "black"
            text = f"{value:.2g}" if value < 100 else f"{value:.0f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=10.5, color=colour)
    ax.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=10.5)
    ax.set_yticks(range(len(names)), names, fontsize=11)
    ax.grid(visible=False)
