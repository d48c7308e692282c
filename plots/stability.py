"""Stability ratios of every library over hard cases, beside the limit."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.policy.schema import LIMIT
from strategies.selection.stability import AUTO

LIBRARIES = {BASELINE: "PyTorch", AUTO: '"auto"', "jax": "JAX", "lineax": "lineax"}
"""What is shown, from top to bottom, and how it is called."""

ENDS = 0.1, 1e16
"""Smaller ratios are drawn at the one end, larger ones and infinite errors at the other."""

STABLE, UNSTABLE = "#0072b2", "#d55e00"


def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation, a line a library, a dot a case, and how many are above the limit."""
    rows = rows[rows["shows"].eq("stability") & rows["strategy"].isin(LIBRARIES)]
    problem = "no hard case was judged (backward-strategies stability --out FILE)"
    rows = style.usual(rows, problem, ["device"])
    shown = [name for name in LIBRARIES if rows["strategy"].eq(name).any()]

    def panel(ax: Axes, rows: pd.DataFrame) -> None:
        for line, name in enumerate(shown):
            _line(ax, line, rows.loc[rows["strategy"].eq(name), "stability"].dropna())
        ax.axvline(LIMIT, label=f"limit, {LIMIT:g}", **style.GUIDE)
        ax.set(xscale="log", xlabel="stability ratio", xlim=(ENDS[0] / 2, ENDS[1] * 2))
        ax.set_xticks([ENDS[0], 1e4, 1e8, 1e12, ENDS[1]], ["≤ 0.1", "10⁴", "10⁸", "10¹²", "≥ 10¹⁶"])
        ax.set_yticks(range(len(shown)), [LIBRARIES[name] for name in shown])
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")

    note = (
        "A dot: the larger ratio of result and gradient in a case; above 1, rounding the inputs does not "
        "explain the error. At the right: the share of cases above the limit, of those that were not "
        "refused. Libraries have samples of different sizes: compare the shares. A row "
        "without one was not judged"
    )
    title = "How stable results and gradients are in hard cases"
    return style.figure(rows, panel, title, note, height=lambda _: 3.2)


def _line(ax: Axes, line: int, ratios: pd.Series) -> None:
    ratios = ratios.clip(*ENDS).sort_values()
    is_unstable = ratios.gt(LIMIT)
    # The golden section spreads any number of dots evenly over the height of the line.
    heights = line + 0.62 * (np.arange(len(ratios)) * 0.618034 % 1 - 0.5)
    colours = np.where(is_unstable, UNSTABLE, STABLE)
    ax.scatter(ratios, heights, s=14, c=colours, alpha=0.6, linewidths=0, rasterized=True)
    share = f"{is_unstable.mean():.1%}" if is_unstable.any() else "none"
    said = f"{share} of {len(ratios)}" if len(ratios) else ""
    colour, at = UNSTABLE if is_unstable.any() else "#505050", ax.get_yaxis_transform()
    ax.text(1.01, line, said, transform=at, va="center", fontsize=11, color=colour)
