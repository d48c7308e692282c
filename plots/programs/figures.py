"""The figures of the programs: time and memory of their steps, and losses where PyTorch is wrong."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.programs import named
from benchmarks.training.results import Result
from plots import style
from strategies.selection.text import seconds, size, times

AUTO, BEST, CEILING = '"auto"', "the best single strategy", "ceiling"
JAX = "the program in JAX"
STEP, MEMORY = "time of a step", "peak memory of a step"

COLOURS = {AUTO: "#0072b2", BEST: "#e69f00"}
HEIGHT = 0.38

TITLES = {STEP: "times as fast as PyTorch", MEMORY: "times less memory than PyTorch"}

LOOK: dict[str, dict[str, Any]] = {
    "PyTorch": {"color": "#404040", "ls": "--"},
    AUTO: {"color": COLOURS[AUTO]},
}


def bars(results: Sequence[Result]) -> Figure:
    """Two bars a program, of its time and of its memory."""
    rows = pd.DataFrame(row for shown in TITLES for row in _rows(results, shown))
    return style.figure(
        rows,
        _panel,
        "Training steps of programs modelled on published code",
        "In brackets: PyTorch's. Whiskers: 95 % intervals. All ways to run a program were measured in "
        "alternation. Ceiling: the calls that can be replaced and their backwards took no time, by their "
        "share of a recorded step. A bar may pass it: the recorder's own time counts as the rest of that "
        "step, and the rest is slower beside PyTorch's calls",
        by="shown",
        width=6.6,
        height=lambda _: 1.0 + 0.42 * rows["program"].nunique(),
        share="",
    )


def _rows(results: Sequence[Result], shown: str) -> Iterator[dict[str, Any]]:
    """For each program and way, how many times less than PyTorch it takes, with a 95 % interval."""
    for each in sorted(results, key=lambda each: -each.faster(each.auto)[0]):
        if shown == STEP:
            taken = seconds(each.torch.step.seconds)
            found = {CEILING: (each.ceiling,) * 3} | ({JAX: each.by_jax} if each.by_jax else {})
            found |= {AUTO: each.faster(each.auto), BEST: each.faster(each.tuned)}
        else:
            taken = size(each.torch.peak_bytes)
            found = {AUTO: (1 / each.memory(each.auto),) * 3}
            found |= {BEST: (1 / each.memory(each.tuned),) * 3}
        shared = {"program": each.program, "shown": shown, "measured_on": each.machine}
        for way, (value, low, high) in found.items():
            label = f"{each.program} ({taken})"
            yield {**shared, "label": label, "way": way, "value": value, "low": low, "high": high}


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    programs = list(rows["program"].unique())
    for row in rows.to_dict("records"):
        line, way, value = programs.index(row["program"]), row["way"], row["value"]
        if way == CEILING:
            ends = [line - HEIGHT, line + HEIGHT]
            ax.plot([value] * 2, ends, color="#404040", lw=2, label=CEILING)
            continue
        if way == JAX:
            ax.plot(value, line, "D", color="#009e73", mec="white", ms=6, zorder=3, label=JAX)
            continue
        at = line + HEIGHT * (list(COLOURS).index(way) - 0.5)
        ax.barh(at, value - 1, HEIGHT, left=1, color=COLOURS[way], label=way)
        ax.plot([row["low"], row["high"]], [at, at], color="#404040", lw=1)
    ax.axvline(1, label="PyTorch", **style.GUIDE)
    ax.set(xscale="log", xlabel=TITLES[rows["shown"].iloc[0]], ylim=(len(programs) - 0.4, -0.6))
    ax.set_yticks(range(len(programs)), rows["label"].unique())
    ax.grid(visible=False, axis="y")
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, 0.8), max(high, 2))
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if low <= tick <= max(high, 2)]
    ax.set_xticks(ticks)
    ax.minorticks_off()
    style.in_units(ax.xaxis, times)


def courses(results: Sequence[Result]) -> Figure:
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
        _course,
        "Where PyTorch's gradient or result is wrong",
        "The program is the same; strategies.replace_torch() is all that differs",
        by="program",
        ylabel="loss",
        width=7.5,
        height=lambda _: 4.4,
        share="",
    )


def _course(ax: Axes, rows: pd.DataFrame) -> None:
    for _, row in rows.iterrows():
        losses = [math.nan if loss is None else loss for loss in row["loss"]]
        ax.plot(losses, label=row["way"], **LOOK[row["way"]])
    ax.set(xlabel="step", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    style.in_units(ax.yaxis, "{:g}".format)
