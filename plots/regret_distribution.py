"""How far from the best each strategy stays, over all cases: what keeping only one costs."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style

FURTHEST = 100.0
"""The axis ends here, or at the largest regret if that is less."""

FEWEST = 3
"""Cases that make a distribution."""


def draw(rows: pd.DataFrame) -> Figure:
    """A performance profile (Dolan & Moré, Mathematical Programming 91, 2002) an operation.

    A curve tells in which share of the cases a strategy is eligible and within a factor of the
    fastest eligible one. It starts at the share of cases it wins; what it lacks at the right end
    are cases that it cannot do, not accurately, or more slowly than that.
    """
    rows = rows.query("ratio >= 1 and verdict != 'ineligible'")
    rows = rows[rows.groupby("operation")["case"].transform("nunique").ge(FEWEST)]
    rows = style.usual(rows, f"no operation has {FEWEST} cases with an eligible strategy", [])
    note = (
        "A curve: in which share of the cases a strategy is accurate enough and takes at most that many "
        "times the fastest's time of forward and backward. What it lacks of 100 % it cannot do, not "
        "accurately, or more slowly than the axis reaches"
    )
    title, ylabel = "Regret of one strategy for all cases", "share of cases"
    figure = style.figure(rows, _panel, title, note, ylabel=ylabel)
    furthest = np.clip(rows["ratio"].max(), 2, FURTHEST)
    figure.axes[0].set(xlim=(0.96, 1.1 * furthest), ylim=(-0.03, 1.03))
    return figure


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    count = rows["case"].nunique()
    for name in style.in_order(rows["strategy"]):
        ratios = rows.loc[rows["strategy"].eq(name), "ratio"].sort_values()
        shares = np.arange(len(ratios) + 1) / count
        x, y = [1.0, *ratios, 1e3 * ratios.max()], [*shares, shares[-1]]
        ax.step(x, y, where="post", markevery=0.07, label=name, **style.look(name))
    ax.set(title=f"{ax.get_title()}, {count} cases", xlabel="time over that of the fastest")
    style.powers_of_two(ax, "{x:g}×")
    ax.yaxis.set_major_formatter("{x:.0%}")
