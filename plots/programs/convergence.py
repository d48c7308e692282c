"""Losses of programs in which PyTorch's gradient or result is wrong."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.programs import named
from benchmarks.training.results import Result
from plots import style

LOOK: dict[str, dict[str, Any]] = {
    "PyTorch": {"color": "#404040", "ls": "--"},
    '"auto"': {"color": "#0072b2"},
}


def draw(results: Sequence[Result]) -> Figure:
    """A panel a program, a curve for PyTorch and one for "auto"; NotDrawableError if there is none."""
    rows = [
        {"program": program.title, "way": name, "loss": way.losses, "measured_on": each.machine}
        for each in results
        if (program := named(each.program)).differs
        for name, way in zip(LOOK, (each.torch, each.auto), strict=True)
    ]
    if not rows:
        problem = "no program was measured that PyTorch's gradient does not train"
        raise style.NotDrawableError(problem)
    return style.figure(
        pd.DataFrame(rows),
        _panel,
        "Where PyTorch's gradient or result is wrong",
        "The program is the same; strategies.replace_torch() is all that differs",
        by="program",
        ylabel="loss",
        width=7.5,
        height=lambda _: 4.4,
        share="",
    )


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    for _, row in rows.iterrows():
        losses = [math.nan if loss is None else loss for loss in row["loss"]]
        ax.plot(losses, label=row["way"], **LOOK[row["way"]])
    ax.set(xlabel="step", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    style.in_units(ax.yaxis, "{:g}".format)
