"""One look for all figures: a colour and a marker a strategy, panels, legend and footer.

The colours are those of Okabe & Ito (Color Universal Design, 2008), told apart by the colour-blind
and, with the markers, without colour. Figures have a white ground of their own, so that they read
the same on light and dark pages, and type large enough to be shown at half their width.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

import strategies
from strategies import registry

COLOURS = ("#404040", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d1d")
STRANGERS = ("#7b3294", "#00563f", "#9e1b32", "#1f3a93", "#6b8e23", "#a0522d", "#4b0082")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GUIDE = "#8a8a8a"

SETTINGS: dict[Any, Any] = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 13,
    "axes.titlesize": 14,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 8,
    "hatch.linewidth": 2,
    "svg.hashsalt": "backward-strategies",
    "svg.fonttype": "path",
}


class NotDrawableError(ValueError):
    """The rows lack what a figure shows; the message says what."""


def look(name: str) -> dict[str, Any]:
    """The colour and marker of a strategy, by its name alone.

    Built-in strategies have theirs by their place in the registry. Any other name is hashed, so
    that a plug-in looks the same whatever else is installed.

    Example:
        >>> look("native") == look("native") != look("somebody_elses")
        True
    """
    built_in = registry.built_in()
    if name in built_in:
        index = built_in.index(name)
        return {"color": COLOURS[index % 8], "marker": MARKERS[(index + index // 8) % 8]}
    digest = zlib.crc32(name.encode())
    return {"color": STRANGERS[digest % 7], "marker": MARKERS[digest // 7 % 8]}


def in_order(names: Iterable[str]) -> list[str]:
    """Strategies in the registry's order, then all others by name."""
    order = {name: rank for rank, name in enumerate(strategies.available())}
    return sorted(set(names), key=lambda name: (order.get(name, len(order)), name))


def panels(
    count: int,
    *,
    columns: int = 3,
    width: float = 4.6,
    height: float = 3.9,
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, filled row by row; with `share`, all on the same scales."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(width * columns, 7.5), height * rows + 1.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share).ravel()
    for unused in grid[count:]:
        unused.remove()
    for ax in grid[:count]:
        ax.tick_params(labelbottom=True)
    return figure, list(grid[:count])


def finish(
    figure: Figure, title: str, rows: pd.DataFrame, handles: Sequence[Artist] = (), note: str = ""
) -> Figure:
    """Adds title and legend above the panels, below them how to read them and the run they are from."""
    columns = max(1, int(figure.get_figwidth() // 2.5))
    heading = figure.legend(
        handles=list(handles),
        title=title,
        loc="outside upper left",
        ncols=min(columns, max(len(handles), 1)),
        alignment="left",
        borderaxespad=0.2,
    )
    heading.get_title().set(fontsize=16, fontweight="bold")
    below = "\n".join(filter(None, [note, footer(rows)]))
    figure.supxlabel(below, x=0.01, ha="left", fontsize=11, color="#505050", linespacing=1.4)
    return figure


def nested(names: Sequence[str], largest: float = 15.0) -> dict[str, dict[str, Any]]:
    """Looks with open markers, smaller and smaller: of points that coincide each is seen."""
    step = (largest - 5.0) / max(len(names) - 1, 1)
    return {
        name: look(name) | {"mfc": "none", "mew": 1.8, "markersize": largest - step * rank}
        for rank, name in enumerate(names)
    }


def key(names: Sequence[str], *, ls: str = "-") -> list[Artist]:
    """What a legend shows for strategies: `ls` is "" where markers stand alone."""
    return [Line2D([], [], label=name, ls=ls, **look(name)) for name in names]


def guide(label: str, ls: str = ":") -> Artist:
    """What a legend shows for a grey line."""
    return Line2D([], [], color=GUIDE, ls=ls, lw=1.5, label=label)


def footer(rows: pd.DataFrame) -> str:
    """The machines, versions, commits and dates that rows come from, a line a machine."""
    lines = []
    for machine, run in rows.groupby("machine", sort=True):
        hardware = _values(run["gpu"] if run["device"].ne("cpu").all() else run["cpu"])
        parts = [str(machine), hardware]
        parts += [f"{threads} threads" if (threads := _values(run["threads"])) else ""]
        parts += [f"torch {version}" if (version := _values(run["torch"])) else ""]
        parts += [f"commit {commit}" if (commit := _values(run["commit"].str[:8])) else ""]
        parts += [_days(run["started_at"])]
        lines.append(" · ".join(part for part in parts if part))
    return "\n".join(lines)


def most_frequent(rows: pd.DataFrame, column: str, preferred: str) -> str:
    """`preferred` if the column holds it, else its most frequent value."""
    values = rows[column].value_counts()
    return preferred if preferred in values else str(values.index[0])


def equivalent_size(rows: pd.DataFrame) -> pd.Series:
    """∛(m n min(m, n)): the n of the square matrix that takes as many multiplications."""
    m, n = rows["m"].astype(float), rows["n"].astype(float)
    return m.mul(n).mul(np.minimum(m, n)).pow(1 / 3)


def sorted_cases(rows: pd.DataFrame) -> list[pd.Series]:
    """One row for every size, rank and batch: single matrices by their work, then batches."""
    sizes = ["m", "n", "rhs", "rank", "batch"]
    distinct = rows.drop_duplicates(sizes)
    distinct = distinct.assign(
        is_batch=distinct["batch"].gt(0),
        is_deficient=distinct["rank"].notna(),
        work=equivalent_size(distinct),
    ).sort_values(["is_batch", "is_deficient", "work", "m", "batch", "rhs"])
    return [case for _, case in distinct.iterrows()]


def widen(ax: Axes, decades: float = 2.0) -> None:
    """Widens logarithmic axes so that small differences do not look large, and two ticks are seen."""
    for axis, set_limits in ((ax.xaxis, ax.set_xlim), (ax.yaxis, ax.set_ylim)):
        low, high = np.log10(axis.get_view_interval())
        middle, half = (low + high) / 2, max(high - low, decades) / 2
        set_limits(10 ** (middle - half), 10 ** (middle + half))
        axis.set_minor_formatter(NullFormatter())


def power_of_two_ticks(ax: Axes, values: pd.Series, at_most: int = 5) -> None:
    """Labels a logarithmic x axis of sizes with powers of two."""
    # A cube root of a power of two may be a bit less.
    first, last = math.floor(math.log2(values.min()) + 1e-9), math.ceil(math.log2(values.max()))
    step = max(1, math.ceil((last - first) / at_most))
    ticks = [2.0**power for power in range(first, last + 1, step)]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)


def in_units(axis: Axis, text: Callable[[float], str]) -> None:
    """Labels an axis of seconds or bytes as the tables do: 10 µs, 1 ms."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())


def drawn(draw: Callable[[pd.DataFrame], Figure]) -> Callable[[pd.DataFrame], Figure]:
    """Gives a drawing function the settings of this module, and takes them back after it."""

    def with_settings(rows: pd.DataFrame) -> Figure:
        with mpl.rc_context(SETTINGS):
            return draw(rows)

    with_settings.__doc__ = draw.__doc__
    return with_settings


def _values(column: pd.Series) -> str:
    return ", ".join(sorted({str(value) for value in column if value}))


def _days(moments: pd.Series) -> str:
    days = sorted({moment.date().isoformat() for moment in moments.dropna()})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else ""
