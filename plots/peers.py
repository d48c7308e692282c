"""The same backward in other libraries, beside native and our best strategy."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from plots import style
from strategies.measuring.case import OPERATIONS
from strategies.policy import BASELINE
from strategies.selection.recommendation import case_text, seconds, times
from strategies.selection.rows import CELL, latest


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A line a case, a mark a library, all measured in turn: how often faster than native.

    Raises:
        NotDrawableError: no other library was timed.
    """
    rows = latest(rows[rows["is_peer"] & rows["speedup_over_native"].gt(0)])
    if rows.empty:
        raise style.NotDrawableError("no other library was timed (python -m benchmarks.peers)")
    cells = [cell for _, cell in rows.groupby(CELL, dropna=False, sort=True)]
    cells.sort(key=lambda cell: OPERATIONS.index(cell["operation"].iloc[0]))
    figure, (ax,) = style.panels(1, width=10.5, height=1.4 + 0.6 * len(cells))
    for line, cell in enumerate(cells):
        _line(ax, line, cell)
    ax.set_yticks(range(len(cells)), [_label(cell) for cell in cells])
    ax.set(xscale="log", xlabel=f"times as fast as {BASELINE}", ylim=(len(cells) - 0.5, -0.5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    handles = style.key(style.in_order(rows["strategy"]), ls="")
    note = "In brackets: the time of native. Whiskers: 95 % intervals; all were measured in turn"
    return style.finish(figure, "Backward beside other libraries", rows, handles, note)


def _line(ax: Axes, line: int, cell: pd.DataFrame) -> None:
    for place, (_, row) in enumerate(cell.iterrows()):
        look, at = style.look(row["strategy"]), line + 0.14 * (place - (len(cell) - 1) / 2)
        ends = row["speedup_over_native_low"], row["speedup_over_native_high"]
        ax.plot(ends, [at, at], color=look["color"], lw=1.5)
        ax.plot(row["speedup_over_native"], at, ls="", ms=10, **look)


def _label(cell: pd.DataFrame) -> str:
    first = cell.iloc[0]
    native = cell.loc[cell["strategy"].eq(BASELINE), "backward_seconds"].max()
    dtype = "" if first["dtype"] == "float64" else f" {first['dtype']}"
    return f"{first['operation']} {case_text(first)}{dtype} ({seconds(native)})"
