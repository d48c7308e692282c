"""Libraries by operations: of value, VJP, JVP and Hessian–vector product the worst verdict."""

import itertools
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plots import style
from strategies.oracle.grader import MISSING, QUANTITIES, REFUSES, RIGHT, UNSTABLE, WRONG
from strategies.oracle.report import Report

LOOKS = {
    RIGHT: ("#009e73", "", "right"),
    UNSTABLE: ("#b87f00", "~", "unstable: above the limit"),
    WRONG: ("#a33c00", "×", "wrong: not one digit"),
    REFUSES: ("#8a8a8a", "–", "refuses every case"),
    MISSING: ("#ececec", "", "not there"),
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
    figure = Figure(
        figsize=(2.2 + 1.4 * len(libraries), 0.8 + 0.38 * len(operations)), layout="constrained"
    )
    axes = figure.subplots()
    for (column, library), (row, operation) in itertools.product(
        enumerate(libraries), enumerate(operations)
    ):
        for i, quantity in enumerate(QUANTITIES):
            verdict = verdicts.get((library, operation, quantity), MISSING)
            _square(axes, column + 0.06 + 0.22 * i, row + 0.12, verdict)
    for colour, mark, said in LOOKS.values():  # what the legend shows
        axes.plot([], [], "s", ms=14, color=colour, label=f"{mark} {said}".strip())
    axes.set(xlim=(0, len(libraries)), ylim=(len(operations), 0))
    names = ["\n".join([*each.library.split(" ", 1), f"{each.cases} a kind"]) for each in reports]
    axes.set_xticks([i + 0.5 for i in range(len(libraries))], labels=names, fontsize=11)
    axes.set_yticks([i + 0.5 for i in range(len(operations))], labels=operations)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    note = (
        "Four squares, from left to right: value, VJP, JVP, Hessian–vector product; each is the worst "
        f"verdict. Below a version: how many cases of each kind and operation, seed {reports[0].seed}"
    )
    style.surround(figure, "Verdicts on results and derivatives of libraries", [note])
    return figure


def _square(axes: Axes, x: float, y: float, verdict: str) -> None:
    colour, mark, _ = LOOKS[verdict]
    axes.add_patch(Rectangle((x, y), 0.2, 0.76, color=colour, lw=0))
    axes.text(x + 0.1, y + 0.4, mark, ha="center", va="center", fontsize=11, color="white")
