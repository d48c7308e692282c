"""Which strategy to use where; ties are hatched."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots import style
from strategies.policy import BASELINE
from strategies.selection.text import DOUBT, TOO_NOISY, doubtful, times


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: cases down, dtypes across; the number is the speed-up over native.

    A tie has the colour of the strategy that is chosen and hatching in that of the fastest other.
    """
    ties = rows.query("verdict == 'tie' and not chosen").sort_values("ratio")
    other = ties.groupby("case")["strategy"].first()
    rows = rows[rows["chosen"]].join(other.rename("other"), on="case")
    rows = style.usual(rows, "no case has an eligible strategy", ["machine", "device"])
    figure = style.figure(
        rows,
        _panel,
        f"What to use, on {rows['device'].iloc[0]}",
        f"Number: speed-up of forward and backward over {BASELINE}. "
        f"Hatching: a tie, in the colour of the fastest other strategy. {DOUBT}: {TOO_NOISY}",
        width=max(1.8 + 0.9 * rows["dtype"].nunique(), 3.6),
        height=lambda rows: 1.0 + 0.38 * rows["sizes"].nunique(),
        share="",
    )
    for ax in figure.axes:  # tiles beside each other are of one height
        beside = [each for each in figure.axes if _row(each) == _row(ax)]
        ax.set_ylim(max(each.get_ylim()[0] for each in beside), -0.5)
    return figure


def _row(ax: Axes) -> int:
    place = ax.get_subplotspec()
    return place.rowspan.start if place else 0


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    badge = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.9}
    ax.add_patch(Rectangle((-9, -9), 1, 1, fill=False, hatch="//", label="tie"))  # out of sight
    for use, tile, text in style.tiles(ax, rows, "dtype", sorted(rows["dtype"].unique())):
        tile.set(facecolor=style.look(use["strategy"])["color"], label=use["strategy"])
        if pd.notna(use["other"]):
            colour = style.look(use["other"])["color"]
            hatched = {"fill": False, "hatch": "//", "lw": 0, "edgecolor": colour}
            ax.add_patch(Rectangle(tile.get_xy(), 1, 1, **hatched))
            ax.add_patch(Rectangle((-9, -9), 1, 1, facecolor=colour, label=use["other"]))
        if use["speedup"] > 0:
            said = doubtful(times(use["speedup"]), use["too_noisy"])
            text.set(text=said, bbox=badge, fontsize=12)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)
