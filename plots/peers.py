"""The same work in other libraries, beside native and the strategy to use."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

import strategies
from plots import style
from strategies.selection.recommendation import case_text, seconds
from strategies.selection.rows import CELL
from strategies.selection.verdicts import BASELINE, Criteria, Objective, judge


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel a case: forward and backward together, which every library can be asked for.

    Raises:
        NotDrawableError: no other library was timed.
    """
    rows = rows[rows["log10_cond"].isna() & rows["forward_backward_seconds"].gt(0)]
    if not rows["is_peer"].any():
        raise style.NotDrawableError("no other library was timed (benchmarks/peers)")
    judged = judge(rows, strategies.available(), Criteria(Objective.FORWARD_BACKWARD))
    ours = judged[judged["chosen"] | judged["strategy"].eq(BASELINE)]
    shown = pd.concat([ours, rows[rows["is_peer"]]], ignore_index=True)
    groups = [
        cell for _, cell in shown.groupby(CELL, dropna=False, sort=True) if cell["is_peer"].any()
    ]
    figure, axes = style.panels(len(groups), columns=2, width=6.4, height=2.6)
    for ax, cell in zip(axes, groups, strict=True):
        _panel(ax, cell.sort_values("forward_backward_seconds", ascending=False))
    return style.finish(figure, "Beside other libraries", pd.concat(groups))


def _panel(ax: Axes, cell: pd.DataFrame) -> None:
    times = cell["forward_backward_seconds"]
    colours = [style.look(name)["color"] for name in cell["strategy"]]
    bars = ax.barh(list(cell["strategy"]), times, color=colours)
    for bar, peer in zip(bars, cell["is_peer"], strict=True):
        bar.set_hatch("//" if peer else "")
        bar.set_edgecolor("white")
    ax.bar_label(bars, [f" {seconds(time)}" for time in times], fontsize=11)
    first = cell.iloc[0]
    ax.set_title(f"{first['operation']} {case_text(first)} {first['dtype']}, {first['device']}")
    # A bar's length is read as its value: the axis starts at zero.
    ax.set(xlim=(0, 1.25 * times.max()), xlabel="forward + backward")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(EngFormatter("s"))
    ax.grid(visible=False, axis="y")
