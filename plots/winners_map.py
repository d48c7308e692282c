"""Who is best where: the strategy to use in every case, ties hatched."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

import strategies
from plots import style
from strategies.selection.recommendation import case_text, times
from strategies.selection.verdicts import COMPARED, Verdict, judge


@style.drawn
def draw(rows: pd.DataFrame) -> Figure:
    """A panel an operation: cases across, dtypes down; the number is the speed-up over native.

    A tie has the colour of the strategy that is chosen and hatching in that of the fastest other.

    Raises:
        NotDrawableError: no case has an eligible strategy.
    """
    rows = rows[~rows["is_peer"]]
    if not rows["log10_cond"].isna().any():
        raise style.NotDrawableError("the results hold no timed case")
    judged = judge(rows, strategies.available())
    judged = judged[judged["device"].eq(style.most_frequent(judged, "device", "cpu"))]
    chosen = judged[judged["chosen"]]
    if chosen.empty:
        raise style.NotDrawableError("no case has an eligible strategy")
    device = chosen["device"].iloc[0]
    operations = sorted(chosen["operation"].unique())
    per_operation = [judged[judged["operation"].eq(operation)] for operation in operations]
    widest = max(len({case_text(row) for _, row in cells.iterrows()}) for cells in per_operation)
    columns = 1 if widest > 8 else 2
    figure, axes = style.panels(
        len(operations),
        columns=columns,
        width=max(1.6 + 0.9 * widest, 5.0),
        height=1.7 + 0.5 * chosen["dtype"].nunique(),
    )
    for ax, operation, cells in zip(axes, operations, per_operation, strict=True):
        _panel(ax, cells)
        ax.set_title(operation)
        ax.set_xlim(-0.5, widest - 0.5)
    handles = [
        Patch(facecolor=style.look(name)["color"], label=name)
        for name in style.in_order(chosen["strategy"])
    ]
    handles.append(Patch(facecolor="white", edgecolor="black", hatch="//", label="tie"))
    note = "Number: speed-up over native. Hatching: in the colour of the fastest that is as good"
    return style.finish(figure, f"What to use, on {device}", judged, handles, note)


def _panel(ax: Axes, cells: pd.DataFrame) -> None:
    dtypes = sorted(cells["dtype"].unique())
    labels = [case_text(case) for case in style.sorted_cases(cells)]
    for _, cell in cells.groupby(COMPARED, dropna=False):
        if not cell["chosen"].any():
            continue
        use = cell[cell["chosen"]].iloc[0]
        others = cell[cell["verdict"].eq(Verdict.TIE) & ~cell["chosen"]].sort_values("ratio")
        x, y = labels.index(case_text(use)), dtypes.index(use["dtype"])
        colour = style.look(use["strategy"])["color"]
        box = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=2)
        ax.add_patch(box)
        if len(others):
            second = style.look(others["strategy"].iloc[0])["color"]
            hatched = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="//", lw=0)
            hatched.set_edgecolor(second)
            ax.add_patch(hatched)
        if use["speedup_over_native"] > 0:
            text = times(use["speedup_over_native"])
            badge = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.9}
            ax.text(x, y, text, ha="center", va="center", fontsize=12, bbox=badge)
    ax.set_xticks(range(len(labels)), labels, rotation=35, ha="right", fontsize=12)
    ax.set_yticks(range(len(dtypes)), dtypes, fontsize=12)
    ax.set_ylim(len(dtypes) - 0.5, -0.5)
    ax.grid(visible=False)
