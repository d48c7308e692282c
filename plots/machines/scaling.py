"""How the speed over native changes with the size."""

from collections.abc import Callable
from typing import Any

import msgspec
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.selection.text import times

FEWEST = 3
"""Sizes of an operation that make a curve."""


def against_size(rows: pd.DataFrame) -> Figure:
    """A panel an operation: the speed over native of the strategy to use, a line a machine."""
    rows = rows.query("shows == 'time' and batch == 0 and kappa == 10 and m == n")
    # One right-hand side, or as few as were measured.
    rows = rows[rows["rhs"].eq(rows.groupby(["operation", "size"])["rhs"].transform("min"))]
    # The runs of a machine differ in day and commit, of which the page says more.
    short = rows["measured_on"].map(lambda each: msgspec.structs.replace(each, commit=""))
    rows = rows.assign(measured_on=short)
    rows = rows[rows["chosen"].astype(bool) & rows["speedup"].gt(0)]
    rows = rows[rows.groupby("operation")["size"].transform("nunique").ge(FEWEST)]
    rows = style.usual(rows, f"no operation was timed at {FEWEST} sizes", ("device", "dtype"))
    return style.figure(
        rows,
        _sizes,
        f"Speed over {BASELINE} of the strategy to use, {style.setting(rows)}",
        "n × n matrices, one at a time, of full rank. Each machine uses the strategy that is the fastest "
        "there. Whiskers are 95 % intervals. The grey line is native",
        ylabel=f"times as fast as {BASELINE}",
    )


FIGURES: dict[str, Callable[[pd.DataFrame], Figure]] = {"machines_size": against_size}
"""By the name of its file, what draws a figure."""


def _sizes(ax: Axes, rows: pd.DataFrame) -> None:
    for index, (name, mine) in enumerate(rows.sort_values("size").groupby("machine")):
        ends = mine["speedup"] - mine["speedup_low"], mine["speedup_high"] - mine["speedup"]
        colour, marker = style.COLOURS[1 + index % 7], style.MARKERS[index % 8]
        look: dict[str, Any] = {"color": colour, "marker": marker, "lw": 2, "ms": 6}
        ax.errorbar(mine["size"], mine["speedup"], ends, label=name, elinewidth=1, **look)
    ax.axhline(1, **style.GUIDE)
    ax.set(xlabel="n")
    style.powers_of_two(ax)
    ax.set_yscale("log", base=2)
    style.in_units(ax.yaxis, times)
