"""Speed-up over native of every strategy in every case, as a heat map."""

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.selection.text import DOUBT, TOO_NOISY, doubtful, seconds, times
from strategies.selection.verdicts import Verdict

COLOUR = ScalarMappable(LogNorm(1 / 16, 16), mpl.colormaps["PuOr"])
"""The scale ends at a factor of 16 either way; the numbers tell what lies beyond."""

LONG = 12
"""An operation with more cases has the names of the strategies above it, as the first has."""


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: strategies across, cases down, from small to large and to batches.

    Native's column shows its time. What is not eligible stands in parentheses, what is to
    be used in bold.
    """
    rows = style.usual(rows.dropna(subset="verdict"), "no case was timed")
    names = style.in_order(rows["strategy"])

    def panel(ax: Axes, rows: pd.DataFrame) -> None:
        for row, tile, text in style.tiles(ax, rows, "strategy", names):
            text.set(text=_text(row), fontweight="bold" if row["chosen"] else "normal")
            if row["speedup"] > 0:
                tile.set(facecolor=COLOUR.to_rgba(row["speedup"]))
                text.set_color("black" if 0.19 < row["speedup"] < 5.3 else "white")
        ax.set_xticklabels([name.replace("_", "\n") for name in names], fontsize=9)
        has_head = ax is ax.figure.axes[0] or rows["sizes"].nunique() > LONG
        ax.tick_params(length=0, pad=6, top=False, labeltop=has_head, labelbottom=False)
        ax.spines[:].set_visible(False)

    title = f"Speed-up over {BASELINE}, {style.setting(rows)}"
    note = (
        "Forward and backward together. Bold: the strategy to use. (Parentheses): not eligible, being "
        f"unstable or not judged. {DOUBT}: {TOO_NOISY}. n/a or blank: does not apply"
    )
    figure = style.figure(
        rows,
        panel,
        title,
        note,
        width=1.8 + 0.74 * len(names),
        height=lambda rows: 0.7 + 0.37 * rows["sizes"].nunique(),
        share="",
    )
    pad = 0.1 / figure.get_figheight()  # in inches
    bar = figure.colorbar(COLOUR, ax=figure.axes, location="top", shrink=0.5, aspect=30, pad=pad)
    bar.set_ticks([1 / 16, 1 / 4, 1, 4, 16], labels=["≤ 1/16", "1/4", "1", "4", "≥ 16"])
    bar.minorticks_off()
    bar.set_label(f"times as fast as {BASELINE}")
    return figure


def _text(row: pd.Series) -> str:
    """The speed-up, or the time where there is none; else why not."""
    if pd.isna(row["seconds"]):
        return str(row["status"])
    is_compared = row["speedup"] > 0 and row["strategy"] != BASELINE
    text = times(row["speedup"]).removesuffix("×") if is_compared else seconds(row["seconds"])
    text = doubtful(text, row["too_noisy"])
    return f"({text})" if row["verdict"] == Verdict.INELIGIBLE else text
