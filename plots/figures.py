"""Which figures there are, and how they are written to files."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

import plots
from plots.style import NotDrawableError

Shown = TypeVar("Shown")


def figures() -> dict[str, Callable[[pd.DataFrame], Figure]]:
    """By its name, what draws a figure: the `draw` of every module here that has one.

    It takes the table of `plots.rows` and raises NotDrawableError if that lacks what it shows.
    """
    names = [module.name for module in pkgutil.iter_modules(plots.__path__)]
    modules = {name: importlib.import_module(f"plots.{name}") for name in names}
    return {name: module.draw for name, module in modules.items() if hasattr(module, "draw")}


def draw_all(
    shown: Shown, out: Path, wanted: Mapping[str, Callable[[Shown], Figure]]
) -> Iterator[tuple[str, str | None]]:
    """Draws figures into a folder, and says why one is not."""
    for name, draw in wanted.items():
        try:
            save(draw, shown, out / name)
        except NotDrawableError as reason:
            yield name, str(reason)
        else:
            yield name, None


def save(draw: Callable[[Shown], Figure], shown: Shown, stem: Path) -> None:
    """Draws a figure and writes it as PNG and SVG; what is equal gives equal files."""
    with mpl.rc_context(fname=Path(__file__).with_suffix(".mplstyle")):
        figure = draw(shown)
        stem.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(stem.with_suffix(".png"))
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
