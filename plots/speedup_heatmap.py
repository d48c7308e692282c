"""Speed-up over native of every strategy in every case, as a heat map."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

import strategies
from plots import style
from strategies.policy import BASELINE
from strategies.selection.recommendation import case_text, times
from strategies.selection.rows import CELL
from strategies.selection.verdicts import Verdict, judge

LARGEST_SHOWN = 16.0
"""The colour scale ends at this factor either way; the numbers tell what lies beyond."""


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: strategies down, cases across, from small to large and to batches.

    What is too inaccurate to be used stands in parentheses, what is to be used in bold.

    Raises:
        NotDrawableError: no speed-up was measured.
    """
    rows = rows[~rows["is_peer"]]
    if not rows["log10_cond"].isna().any():
        raise style.NotDrawableError("the results hold no timed case")
    rows = judge(rows, strategies.available())
    rows = rows[rows["speedup_over_native"].gt(0) & rows["strategy"].ne(BASELINE)]
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
    for index, ax in enumerate(axes):
        ax.set_yticks(range(len(names)), names if index % columns == 0 else [""] * len(names))
    bar = figure.colorbar(ScalarMappable(scale, "PuOr"), ax=axes, shrink=0.7, pad=0.02)
    ticks = [-4, -2, 0, 2, 4]
    bar.set_ticks(ticks, labels=["≤ 1/16", "1/4", "1", "4", "≥ 16"])
    bar.set_label("times as fast as native")
    note = (
        "Bold: the strategy to use. (Parentheses): too inaccurate to be used. n/a: does not apply"
    )
    return style.finish(figure, f"Speed-up over native, {dtype} on {device}", rows, note=note)


def _panel(ax: Axes, rows: pd.DataFrame, names: list[str], scale: Normalize) -> None:
    cases = style.sorted_cases(rows)
    labels = [case_text(case) for case in cases]
    values = np.full((len(names), len(labels)), np.nan)
    for _, row in rows.iterrows():
        i, j = names.index(row["strategy"]), labels.index(case_text(row))
        values[i, j] = value = row["speedup_over_native"]
        text = times(value).removesuffix("×")
        is_dark = abs(np.log2(value)) > 0.6 * np.log2(LARGEST_SHOWN)
        ax.text(
            j,
            i,
            f"({text})" if row["verdict"] == Verdict.INELIGIBLE else text,
            ha="center",
            va="center",
            fontsize=12,
            fontweight="bold" if row["chosen"] else "normal",
            color="white" if is_dark else "black",
        )
    for i, j in np.argwhere(np.isnan(values)):
        ax.text(j, i, "n/a", ha="center", va="center", fontsize=11, color=style.GUIDE)
    ax.imshow(np.log2(values), cmap="PuOr", norm=scale, aspect="auto")
    ax.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=12)
    ax.grid(visible=False)
