"""Losses of programs in which PyTorch's gradient or result is wrong."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style

LOOK: dict[str, dict[str, Any]] = {
    "PyTorch": {"color": "#404040", "ls": "--"},
    '"auto"': {"color": "#0072b2"},
}


def draw(rows: pd.DataFrame) -> Figure:
    """A panel a program, a curve for PyTorch and one for "auto".

    Raises:
        NotDrawableError: there is no such program.
    """
    if rows.empty:
        raise style.NotDrawableError(
            "no program was measured that PyTorch's gradient does not train"
        )
    return style.figure(
        rows,
        _panel,
        "Where PyTorch's gradient or result is wrong",
        "The program is the same; strategies.replace_torch() is all that differs",
        by="program",
        ylabel="loss",
        width=7.5,
        height=lambda _: 4.4,
        share=False,
    )


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    for way, own in rows.groupby("way", sort=False):
        ax.plot(own["step"], own["loss"], label=way, **LOOK[str(way)])
    ax.set(xlabel="step", yscale="log")
