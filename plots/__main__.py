"""`python -m plots --results DIR --out DIR`: every figure that the results allow."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import pandas as pd
import typer
from matplotlib.figure import Figure

from plots.style import SETTINGS, NotDrawableError
from strategies.commands.common import DEFAULT_RESULTS, Results, console, tells_errors
from strategies.selection import rows

FIGURES = (
    "time_against_size",
    "speedup_heatmap",
    "error_against_conditioning",
    "error_against_size",
    "error_over_gallery",
    "time_against_error",
    "winners_map",
    "memory_of_tall",
    "regret_distribution",
    "peers",
)


@tells_errors
def main(
    results: Results = DEFAULT_RESULTS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figures go.")] = Path("out"),
) -> None:
    """Draw all figures as PNG and SVG, and say which could not be drawn."""
    for name, problem in draw_all(rows.latest(rows.load(results)), out):
        if problem is None:
            console.print(f"{name}: {out / name}.png, .svg")
        else:
            console.print(f"{name}: not drawn, {problem}", style="yellow")


def draw_all(measured: pd.DataFrame, out: Path) -> Iterator[tuple[str, str | None]]:
    """Draws the figures into a folder, one by one, and says why if one cannot be drawn."""
    out.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        try:
            figure = importlib.import_module(f"plots.{name}").draw(measured)
        except NotDrawableError as reason:
            yield name, str(reason)
            continue
        save(figure, out / name)
        yield name, None


def save(figure: Figure, stem: Path) -> None:
    """Writes a figure as PNG and SVG; equal figures give equal files."""
    with mpl.rc_context(SETTINGS):
        figure.savefig(stem.with_suffix(".png"), dpi=110)
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    typer.run(main)
