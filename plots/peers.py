"""The same gradients by other libraries, beside native and our best strategy."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.selection.text import seconds, times

SHOWN = {"forward and backward": "speedup", "backward alone": "backward_speedup"}
"""The column of each panel, by its title."""


def draw(rows: pd.DataFrame) -> Figure:
    """A line a case, a mark a library: how many times as fast as native."""
    problem = "no other library was timed (python -m benchmarks.peers)"
    rows = style.usual(rows.query("shows == 'peers'"), problem, ["machine", "device"])
    return style.figure(
        rows.merge(pd.DataFrame({"shown": list(SHOWN)}), how="cross"),
        _panel,
        f"Speed over {BASELINE} of our strategies and other libraries",
        f"In brackets: {BASELINE}'s forward and backward. Whiskers: 95 % intervals. "
        "All of a case were measured in alternation",
        by="shown",
        width=5.6,
        height=lambda _: 0.8 + 0.55 * rows["case"].nunique(),
    )


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    column = SHOWN[rows["shown"].iloc[0]]
    cells = [cell for _, cell in rows.groupby("case", sort=False)]
    for line, cell in enumerate(cells):
        for place, (_, row) in enumerate(cell[cell["strategy"].ne(BASELINE)].iterrows()):
            look, at = style.look(row["strategy"]), line + 0.24 * (place - (len(cell) - 2) / 2)
            ax.plot([row[f"{column}_low"], row[f"{column}_high"]], [at, at], color=look["color"])
            ax.plot(row[column], at, ls="", ms=10, label=row["strategy"], **look)
    ax.axvline(1, label=BASELINE, **style.GUIDE)
    ax.set(xscale="log", xlabel=f"times as fast as {BASELINE}", ylim=(len(cells) - 0.5, -0.5))
    ax.set_yticks(range(len(cells)), map(_label, cells))
    style.in_units(ax.xaxis, times)


def _label(cell: pd.DataFrame) -> str:
    first = cell.iloc[0]
    native = cell.loc[cell["strategy"].eq(BASELINE), "seconds"].max()
    dtype = "" if first["dtype"] == "float64" else f" {first['dtype']}"
    return f"{first['operation']} {first['sizes']}{dtype} ({seconds(native)})"
