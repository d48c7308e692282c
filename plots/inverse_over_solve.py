"""The time of a strategy that forms the inverse over that of one that solves, against the size."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from plots import style
from plots.inverse_or_solve import INVERSE, SOLVE
from strategies.policy.schema import LIMIT
from strategies.selection.stability import evidence
from strategies.selection.text import times

TIMED = {"seconds": "forward and backward", "backward_seconds": "backward alone"}
"""The columns that are compared, and what they hold."""

LOOKS: dict[str, dict[str, Any]] = {
    "seconds": {"color": style.COLOURS[1], "marker": "o"},
    "backward_seconds": {
        "color": style.COLOURS[5],
        "marker": "s",
        "ls": "--",
        "mfc": "none",
        "ms": 9,
    },
}

UNSTABLE = "#fbe9e7"


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: medians over single matrices of full rank whose shorter side is n."""
    hard = rows[rows["shows"].eq("stability") & rows["strategy"].eq(INVERSE)]
    shipped = {name: of[INVERSE].worst for name, of in evidence([]).items() if INVERSE in of}
    worst = {**shipped, **hard.groupby("operation")["stability"].max()}
    rows = rows[rows["strategy"].isin([INVERSE, SOLVE])]
    rows = rows.query("shows == 'time' and batch == 0 and kappa == 10 and seconds > 0 and not busy")
    rows = rows[rows.groupby("case")["strategy"].transform("nunique").eq(2)]
    rows = style.usual(
        rows,
        f"no single matrix was timed with {INVERSE} and {SOLVE} on a machine that was not busy",
    )
    rows = rows.assign(n=rows[["m", "n"]].min(axis=1), worst=rows["operation"].map(worst))
    title = f"Time of the inverse over time of solves, {style.setting(rows)}"
    note = (
        f"{INVERSE} over {SOLVE}; below the line the inverse is faster. Medians over the single matrices "
        "of full rank whose shorter side is n. Red: its errors in hard cases reach so many times what "
        f"rounding the inputs explains; above {LIMIT:.0f} it may not be used"
    )
    ylabel = "time, inverse / solve"
    figure = style.figure(rows, _panel, title, note, ylabel=ylabel, height=lambda _: 3.0, share="y")
    ax = figure.axes[0]
    ax.set_yscale("log", base=2)
    low, high = ax.get_ylim()
    if high < 4 * low:  # which may hold one power of two
        ax.yaxis.set_major_locator(LogLocator(base=2, subs=(1, 1.5)))
    style.in_units(ax.yaxis, times)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    for column, label in TIMED.items():
        by_case = rows.pivot_table(column, ["n", "case"], "strategy")
        ratios = (by_case[INVERSE] / by_case[SOLVE]).groupby("n").median()
        ax.plot(ratios.index, ratios, label=label, **LOOKS[column])
    ax.axhline(1, **style.GUIDE)
    style.powers_of_two(ax)
    sizes = rows["n"].unique()
    ax.set(xlabel="shorter side n", xlim=(sizes.min() / 1.2, 1.2 * sizes.max()))
    if len(sizes) < 3:  # between which there may be no power of two
        ax.set_xticks(sizes)
    worst = rows["worst"].iloc[0]
    if worst > LIMIT:
        ax.set_facecolor(UNSTABLE)
        ax.set_title(f"{ax.get_title()}, unstable: {worst:.0e}", color="#9e1b32")
