"""One look for all figures: a colour and a marker a strategy, panels, legend and footer.

The colours are those of Okabe & Ito (Color Universal Design, 2008), told apart by the colour-blind
and, with the markers, without colour. By `figures.mplstyle`, figures have a white ground of their own,
so that they read the same on light and dark pages, and type that is read at half their width.
"""

import math
import textwrap
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.ticker import NullFormatter

from strategies import registry
from strategies.selection import text
from strategies.selection.verdicts import simplicity

COLOURS = ("#404040", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d1d")
STRANGERS = ("#7b3294", "#00563f", "#9e1b32", "#1f3a93", "#6b8e23", "#a0522d", "#4b0082")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MARKERS_OF_STRANGERS = ("p", "h", "<", ">", "d", "8", "H")
GUIDE: dict[str, Any] = {"color": "#8a8a8a", "lw": 1.5, "zorder": 1}
PREFERRED = {"dtype": "float64", "device": "cpu"}
ERROR = "relative error of gradient"


class NotDrawableError(ValueError):
    """The rows lack what a figure shows; the message says what."""


def usual(
    rows: pd.DataFrame, problem: str, columns: Sequence[str] = ("machine", "device", "dtype")
) -> pd.DataFrame:
    """The rows of one machine, device and dtype: the CPU and float64 if there, else most rows'.

    If there are no rows, it raises NotDrawableError with the problem.
    """
    if rows.empty:
        raise NotDrawableError(problem)
    for column in columns:
        counts = rows[column].value_counts()
        preferred = PREFERRED.get(column, "")
        rows = rows[rows[column].eq(preferred if preferred in counts else str(counts.index[0]))]
    return rows


def setting(rows: pd.DataFrame) -> str:
    """The dtype and device of `usual` rows, for titles."""
    return f"{rows['dtype'].iloc[0]} on {rows['device'].iloc[0]}"


def look(name: str) -> dict[str, Any]:
    """The colour and marker of a strategy, by its name alone.

    Built-in strategies have theirs by their place in the registry. Any other name is hashed, so
    that a plug-in looks the same whatever else is installed.
    """
    built_in = registry.built_in()
    if name in built_in:
        index = built_in.index(name)
        return {"color": COLOURS[index % 8], "marker": MARKERS[(index + index // 8) % 8]}
    digest = zlib.crc32(name.encode())
    return {"color": STRANGERS[digest % 7], "marker": MARKERS_OF_STRANGERS[digest // 7 % 7]}


def in_order(names: Iterable[str]) -> list[str]:
    """Strategies in the registry's order, then all others by name."""
    return sorted(set(names), key=simplicity)


def figure(
    rows: pd.DataFrame,
    panel: Callable[[Axes, pd.DataFrame], None],
    title: str,
    note: str = "",
    *,
    by: str = "operation",
    ylabel: str = "",
    width: float = 4.6,
    height: Callable[[pd.DataFrame], float] = lambda _: 3.9,
    share: str = "xy",
) -> Figure:
    """A panel, with sizes in inches, for every value of the column `by`, drawn by `panel`.

    Above them are the title and a legend of all labels, below them how to read the figure and the
    runs it is from. All panels have the axes named by `share` in common.
    """
    groups = list(rows.groupby(by, sort=False))
    columns = min(3, int(14 // width), len(groups))
    heights = [height(group) for _, group in groups]
    heights = [max(heights[start : start + columns]) for start in range(0, len(groups), columns)]
    made = Figure(figsize=(max(width * columns, 7.5), sum(heights)), layout="constrained")
    axes = made.subplots(
        *(len(heights), columns),
        sharex="x" in share,
        sharey="y" in share,
        squeeze=False,
        height_ratios=heights,
    ).ravel()
    for unused in axes[len(groups) :]:
        unused.remove()
    for ax, (name, group) in zip(axes, groups, strict=False):
        ax.set_title(str(name))
        ax.tick_params(labelbottom=True)
        panel(ax, group)
    for ax in axes[::columns]:
        ax.set_ylabel(ylabel)
    surround(made, title, [note, *text.provenance(rows["measured_on"])])
    return made


def surround(figure: Figure, title: str, below: Sequence[str]) -> None:
    """Adds title and legend above the panels and paragraphs below, and makes room for both.

    The legend has strategies in the registry's order, then all else as it was drawn.
    """
    width, height = figure.get_size_inches()
    entries = {
        label: handle
        for ax in figure.axes
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    labels = sorted(entries, key=lambda label: simplicity(label)[0])
    columns = max(1, min(int(width // 2.5), len(labels)))
    legend = figure.legend([entries[label] for label in labels], labels, ncols=columns, title=title)
    legend.set(loc="outside upper left", alignment="left")
    legend.get_title().set_fontweight("bold")
    lines = [line for paragraph in below for line in textwrap.wrap(paragraph, int(11.5 * width))]
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", color="#505050", linespacing=1.4)
    figure.set_figheight(height + 0.5 + 0.28 * math.ceil(len(labels) / columns) + 0.22 * len(lines))


def curves(ax: Axes, rows: pd.DataFrame, x: str, y: str, ls: str = "-") -> None:
    """A curve a strategy, or markers alone where `ls` is "".

    Markers are open, and smaller from strategy to strategy: of points that coincide each is seen.
    """
    names = in_order(rows["strategy"])
    step = 10.0 / max(len(names) - 1, 1)
    for rank, name in enumerate(names):
        mine = rows[rows["strategy"].eq(name)].sort_values(x)
        ax.plot(mine[x], mine[y], ls=ls, mfc="none", mew=1.8, ms=15 - step * rank, **look(name))
        ax.plot([], [], ls=ls, label=name, **look(name))  # what the legend shows


def errors(ax: Axes, rows: pd.DataFrame, x: str, xlabel: str) -> None:
    """Curves of errors on logarithmic axes; above the grey line at 1 no digit is right."""
    curves(ax, rows, x, "error")
    if rows["error"].max() > 1:
        ax.axhline(1, **GUIDE)
    ax.set(xscale="log", yscale="log", xlabel=xlabel)
    ax.yaxis.set_minor_formatter(NullFormatter())


def tiles(
    ax: Axes, rows: pd.DataFrame, column: str, across: Sequence[str], **labels: Any
) -> Iterator[tuple[pd.Series, Rectangle, Text]]:
    """Makes a table of sizes down and the values of a column across: each row, its tile and text."""
    down = list(rows["sizes"].unique())
    ax.set_xticks(range(len(across)), across, fontsize=12, **labels)
    ax.set_yticks(range(len(down)), down, fontsize=12)
    ax.set(xlim=(-0.5, len(across) - 0.5), ylim=(len(down) - 0.5, -0.5))
    ax.grid(visible=False)
    for _, row in rows.iterrows():
        x, y = across.index(row[column]), down.index(row["sizes"])
        tile = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor="white", edgecolor="white", lw=2)
        ax.add_patch(tile)
        yield row, tile, ax.text(x, y, "", ha="center", va="center", fontsize=11)


def powers_of_two(ax: Axes, how: str = "{x:g}") -> None:
    """Gives a panel a logarithmic x axis whose ticks are powers of two."""
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(how)


def in_units(axis: Axis, in_words: Callable[[float], str]) -> None:
    """Labels a logarithmic axis of seconds, bytes or ratios as the tables do: 10 µs, 1 ms."""
    axis.set_major_formatter(lambda value, _: in_words(value))
    axis.set_minor_formatter(NullFormatter())


def widen(*axes: XAxis | YAxis) -> None:
    """Widens logarithmic axes to two decades: small differences do not look large."""
    for axis in axes:
        low, high = axis.get_view_interval()
        excess = max(100 * low / high, 1.0) ** 0.5
        axis.axes.set(**{f"{axis.axis_name}lim": (low / excess, high * excess)})
