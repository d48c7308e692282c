"""`python -m plots.machines PAGE --results DIR --figures DIR`: what each machine says, and how far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plots import marked, rows
from plots.figures import save
from plots.machines import page, scaling
from plots.style import NotDrawableError
from strategies import store
from strategies.commands.common import DEFAULT_RESULTS, Results, console, reports_errors


@reports_errors
def main(
    out: Annotated[Path, typer.Argument(metavar="PAGE", help="A Markdown file.")],
    results: Results = DEFAULT_RESULTS,
    figures: Annotated[Path, typer.Option(metavar="DIR")] = Path("out/figures"),
) -> None:
    """Draw how speed scales, and put tables between the markers of a page."""
    runs = store.load(results)
    marked.fill(out, page.parts(runs))
    frame = rows.table([run for run in runs if run.kind == "grid"])
    for name, draw in scaling.FIGURES.items():
        try:
            save(draw, frame, figures / name)
        except NotDrawableError as reason:
            console.print(f"{name}: not drawn, {reason}", style="yellow")


if __name__ == "__main__":
    typer.run(main)
