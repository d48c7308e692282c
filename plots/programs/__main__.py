"""`python -m plots.programs PAGE --results DIR --figures DIR`: figures, and what a page says of them."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.training import memory_plan, results
from plots import marked
from plots.figures import draw_all
from plots.programs import figures as drawn
from plots.programs import page
from strategies.cli.common import console, reports_errors


@reports_errors
def main(
    out: marked.Page,
    measured: Annotated[Path, typer.Option("--results", metavar="DIR")] = Path(
        "docs/data/programs"
    ),
    figures: marked.Figures = Path("out/figures"),
    full: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Results of full sizes, for a table.")
    ] = None,
) -> None:
    """Draw the programs' figures, and put tables and paragraphs between the markers of a page."""
    found = results.load(measured)
    wanted = {"programs": drawn.bars, "convergence": drawn.courses}
    for name, problem in draw_all(found, figures, wanted):
        if problem:
            console.print(f"{name}: not drawn, {problem}", style="yellow")
    parts = {
        "summary": page.summary(found),
        "table": page.table(found),
        "choices": page.regret_table(found),
        "plan": page.plan_table(memory_plan.plans()),
        "programs": page.paragraphs(found),
    }
    if full is not None:
        of_full = results.load(full)
        parts["full"] = f"{page.summary(of_full)}\n\n{page.table(of_full)}"
    marked.fill(out, parts)


if __name__ == "__main__":
    typer.run(main)
