"""Libraries by operations: of value, VJP, JVP and Hessian–vector product the worst verdict."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from strategies.oracle.grader import MISSING, QUANTITIES, REFUSES, RIGHT, UNSTABLE, WRONG
from strategies.oracle.report import Report

LOOKS = {
    RIGHT: ("#009e73", "", "right"),
    UNSTABLE: ("#e69f00", "~", "unstable: above the limit"),
    WRONG: ("#a33c00", "×", "wrong: not one digit"),
    REFUSES: ("#b0b0b0", "–", "refuses every case"),
    MISSING: ("#f2f2f2", "", "not there"),
}
"""Of each verdict the colour, the mark and what the legend says."""


def worst(reports: Sequence[Report]) -> dict[tuple[str, str, str], str]:
    """By library, operation and quantity, the worst verdict of the ways to compute it."""
    order = (WRONG, UNSTABLE, RIGHT, REFUSES, MISSING)
    found: dict[tuple[str, str, str], str] = {}
    for report in reports:
        for entry in report.entries:
            key = report.library, entry.operation, entry.quantity.partition(".")[0]
            found[key] = min(found.get(key, MISSING), entry.verdict, key=order.index)
    return found


def draw(reports: Sequence[Report]) -> Figure:
    """A square for each quantity, four in a row for an operation and a library."""
    verdicts = worst(reports)
    libraries = [report.library for report in reports]
    operations = sorted({operation for _, operation, _ in verdicts})
    figure = Figure(figsize=(1.2 + 1.15 * len(libraries), 1.6 + 0.34 * len(operations)))
    axes = figure.add_axes((0.16, 0.12, 0.83, 0.72))
    for column, library in enumerate(libraries):
        for row, operation in enumerate(operations):
            for i, quantity in enumerate(QUANTITIES):
                verdict = verdicts.get((library, operation, quantity), MISSING)
                _square(axes, column + 0.06 + 0.22 * i, row + 0.12, verdict)
    axes.set(xlim=(0, len(libraries)), ylim=(len(operations), 0))
    axes.set_xticks([i + 0.5 for i in range(len(libraries))])
    axes.set_xticklabels([library.replace(" ", "\n", 1) for library in libraries], fontsize=8)
    axes.set_yticks([i + 0.5 for i in range(len(operations))], labels=operations)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour, _, _ in LOOKS.values()]
    labels = [f"{mark} {said}".strip() for _, mark, said in LOOKS.values()]
    figure.legend(handles, labels, loc="lower center", ncols=len(LOOKS), fontsize=8, frameon=False)
    said = "in each cell, from left to right: value, VJP, JVP, HVP"
    figure.text(0.16, 0.085, said, fontsize=8, va="bottom")
    return figure


def _square(axes: Axes, x: float, y: float, verdict: str) -> None:
    colour, mark, _ = LOOKS[verdict]
    axes.add_patch(Rectangle((x, y), 0.2, 0.76, color=colour, lw=0))
    axes.text(x + 0.1, y + 0.4, mark, ha="center", va="center", fontsize=8, color="white")
