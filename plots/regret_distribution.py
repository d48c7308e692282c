"""How far from the best each strategy stays, over all cases: what keeping only one costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import strategies
from plots import style
from strategies.selection.verdicts import Verdict, judge

FURTHEST = 100.0
"""The axis ends here, or at the largest regret if that is less."""


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A performance profile (Dolan & Moré, Mathematical Programming 91, 2002) an operation.

    A curve tells in which share of the cases a strategy is eligible and within a factor of the
    fastest eligible one. It starts at the share of cases it wins; what it lacks at the right end
    are cases that it cannot do, or not accurately.

    Raises:
        NotDrawableError: no operation has three cases with an eligible strategy.
    """
    rows = rows[~rows["is_peer"]]
    if not rows["log10_cond"].isna().any():
        raise style.NotDrawableError("the results hold no timed case")
    judged = judge(rows, strategies.available())
    operations = judged.groupby("operation")["chosen"].sum()
    names = sorted(operations.index[operations >= 3])
    judged = judged[judged["operation"].isin(names)]
    if judged.empty:
        raise style.NotDrawableError("no operation has three cases with an eligible strategy")
    figure, axes = style.panels(len(names), share=True)
    for ax, operation in zip(axes, names, strict=True):
        cases = judged[judged["operation"].eq(operation)]
        count = int(cases["chosen"].sum())
        _panel(ax, cases, count)
        ax.set_title(f"{operation}, {count} cases")
    eligible = judged[judged["verdict"].ne(Verdict.INELIGIBLE)]
    right = min(FURTHEST, max(float(eligible["ratio"].max()), 2.0))
    for ax in axes:
        ax.set(
            xscale="log",
            xlim=(0.96, right * 1.1),
            ylim=(-0.03, 1.03),
            xlabel="time over the fastest's",
        )
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick <= right]
        ax.set_xticks(ticks, [f"{tick}×" for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.yaxis.set_major_formatter("{x:.0%}")
    for ax in axes[::3]:
        ax.set_ylabel("share of cases")
    handles = style.key(style.in_order(eligible["strategy"]))
    note = (
        "A curve: in which share of the cases a strategy is accurate enough and takes at most that many "
        "times\nthe fastest's time. What it lacks of 100 % it cannot do, or not accurately"
    )
    return style.finish(figure, "Regret of keeping one strategy", judged, handles, note)


def _panel(ax: Axes, cases: pd.DataFrame, count: int) -> None:
    eligible = cases[cases["verdict"].ne(Verdict.INELIGIBLE)]
    for name in style.in_order(eligible["strategy"]):
        ratios = np.sort(eligible[eligible["strategy"].eq(name)]["ratio"].to_numpy(dtype=float))
        shares = np.arange(1, len(ratios) + 1) / count
        x = np.concatenate([[1.0], ratios, [max(2 * FURTHEST, ratios[-1])]])
        y = np.concatenate([[0.0], shares, shares[-1:]])
        ax.step(x, y, where="post", markevery=slice(1, -1), **style.look(name))
