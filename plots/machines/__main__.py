"""`python -m plots.machines PAGE --results DIR --figures DIR`: what each machine says, and how far."""

import os
from pathlib import Path

import typer

from plots import marked, rows
from plots.figures import draw_all
from plots.machines import page, scaling
from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors
from strategies.measuring import store


@reports_errors
def main(
    out: marked.Page,
    results: Results = DEFAULT_RESULTS,
    figures: marked.Figures = Path("out/figures"),
) -> None:
    """Draw how speed scales, and put tables between the markers of a page."""
    runs = store.load(results)
    parts = page.parts(runs)
    frame = rows.table([run for run in runs if run.kind == "grid"])
    for name, problem in draw_all(frame, figures, scaling.FIGURES):
        file = os.path.relpath(figures / f"{name}.svg", out.parent)
        alt = name.replace("_", " ")
        parts[name] = f"Not drawn: {problem}." if problem else f"![{alt}]({file})"
    marked.fill(out, {name: content.strip() for name, content in parts.items()})


if __name__ == "__main__":
    typer.run(main)
