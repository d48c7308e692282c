"""Which figures there are, and how they are written to files."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

import plots
from plots.style import NotDrawableError

Draw = Callable[[pd.DataFrame], Figure]


def figures() -> dict[str, Draw]:
    """By its name, what draws a figure: the `draw` of every module here that has one.

    It takes the table of `plots.rows` and raises NotDrawableError if that lacks what it shows.
    """
    names = [module.name for module in pkgutil.iter_modules(plots.__path__)]
    modules = {name: importlib.import_module(f"plots.{name}") for name in names}
    return {name: module.draw for name, module in modules.items() if hasattr(module, "draw")}


def draw_all(
    rows: pd.DataFrame, out: Path, wanted: Mapping[str, Draw] | None = None
) -> Iterator[tuple[str, str | None]]:
    """Draws the figures, or those wanted, into a folder, and says why one is not."""
    for name, draw in (figures() if wanted is None else wanted).items():
        try:
            save(draw, rows, out / name)
        except NotDrawableError as reason:
            yield name, str(reason)
        else:
            yield name, None


def save(draw: Draw, rows: pd.DataFrame, stem: Path) -> None:
    """Draws a figure and writes it as PNG and SVG; equal rows give equal files."""
    with mpl.rc_context(fname=Path(__file__).with_suffix(".mplstyle")):
        figure = draw(rows)
        stem.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(stem.with_suffix(".png"))
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
