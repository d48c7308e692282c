"""How the speed over native changes with the size, and with the number of threads."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import style
from strategies.policy import BASELINE
from strategies.selection.text import times

CHOSEN = "the strategy to use"
FEWEST = 3
"""Sizes of an operation that make a curve."""


def against_size(rows: pd.DataFrame) -> Figure:
    """A panel an operation: the speed over native of the strategy to use, a line a machine."""
    rows = _square(rows)
    rows = rows[rows["chosen"].astype(bool) & rows["speedup"].gt(0)]
    rows = rows[rows.groupby("operation")["size"].transform("nunique").ge(FEWEST)]
    rows = style.usual(rows, f"no operation was timed at {FEWEST} sizes", ("device", "dtype"))
    return style.figure(
        rows,
        _sizes,
        f"Speed over {BASELINE} of the strategy to use, {style.setting(rows)}",
        "n × n matrices, one at a time, of full rank. Each machine uses the strategy that is the fastest "
        "there. Bars are 95 % intervals. The grey line is native",
        ylabel=f"times as fast as {BASELINE}",
    )


def against_threads(rows: pd.DataFrame) -> Figure:
    """A panel an operation: how many times faster the most threads are than the fewest."""
    rows = _square(rows)
    rows = style.usual(rows[rows["seconds"].gt(0)], "nothing was timed", ("device", "dtype"))
    few, many = _threads(rows)
    pairs = []
    for label, is_shown in ((BASELINE, rows["strategy"].eq(BASELINE)), (CHOSEN, rows["chosen"])):
        shown = rows[is_shown.astype(bool)]
        one, other = (shown[shown["machine"].eq(name)] for name in (few, many))
        both = one.merge(other, on=["operation", "size"], suffixes=("", "_many"))
        both = both.assign(label=label, gain=both["seconds"] / both["seconds_many"])
        # The footer says where either was measured.
        pairs += [both, both.assign(measured_on=both["measured_on_many"], gain=math.nan)]
    found = pd.concat(pairs)
    return style.figure(
        found,
        _gains,
        f"What threads gain: {few} over {many}, {style.setting(rows)}",
        "Seconds of forward and backward with the fewest threads over those with the most, of n × n "
        "matrices. The two were not measured in the same rounds, so the ratios are not paired",
        ylabel="times as fast with more threads",
    )


FIGURES: dict[str, Callable[[pd.DataFrame], Figure]] = {
    "machines_size": against_size,
    "machines_threads": against_threads,
}
"""By the name of its file, what draws a figure."""


def _square(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.query("shows == 'time' and batch == 0 and kappa == 10 and m == n")
    # One right-hand side, or as few as were measured.
    rows = rows[rows["rhs"].eq(rows.groupby(["operation", "size"])["rhs"].transform("min"))]
    # The runs of a machine differ in day and commit, of which the page says more.
    short = rows["measured_on"].map(lambda each: msgspec.structs.replace(each, commit=""))
    return rows.assign(measured_on=short)


def _threads(rows: pd.DataFrame) -> tuple[str, str]:
    """Two machines that differ in the number of threads alone, as much as any do: fewest, most."""
    known: dict[tuple[str, ...], dict[int, str]] = {}
    for machine in rows["measured_on"]:
        like = (machine.cpu, machine.torch, machine.blas)
        known.setdefault(like, {})[machine.threads] = machine.name
    several = max(known.values(), key=lambda names: max(names) / max(min(names), 1), default={})
    if len(several) < 2:
        raise style.NotDrawableError("no two machines differ in the number of threads alone")
    return several[min(several)], several[max(several)]


def _sizes(ax: Axes, rows: pd.DataFrame) -> None:
    for index, (name, mine) in enumerate(rows.sort_values("size").groupby("machine")):
        ends = mine["speedup"] - mine["speedup_low"], mine["speedup_high"] - mine["speedup"]
        colour, marker = style.COLOURS[1 + index % 7], style.MARKERS[index % 8]
        look: dict[str, Any] = {"color": colour, "marker": marker, "lw": 2, "ms": 6}
        ax.errorbar(mine["size"], mine["speedup"], ends, label=name, elinewidth=1, **look)
    _finish(ax)
    ax.set_yscale("log", base=2)
    style.in_units(ax.yaxis, times)


def _gains(ax: Axes, rows: pd.DataFrame) -> None:
    looks = {BASELINE: style.look(BASELINE), CHOSEN: {"color": style.COLOURS[1], "marker": "s"}}
    for label, mine in rows.dropna(subset="gain").sort_values("size").groupby("label"):
        ax.plot(mine["size"], mine["gain"], ms=6, label=label, **looks[str(label)])
    _finish(ax)
    ax.yaxis.set_major_formatter("{x:g}×")


def _finish(ax: Axes) -> None:
    ax.axhline(1, **style.GUIDE)
    ax.set(xlabel="n")
    style.powers_of_two(ax)
