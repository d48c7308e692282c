"""`python -m plots --results DIR --out DIR [NAME]...`: the figures that the results allow, or some."""

from pathlib import Path
from typing import Annotated

import typer

from plots import rows
from plots.figures import draw_all, figures
from strategies.cli.common import DEFAULT_RESULTS, Results, console, reports_errors
from strategies.measuring import store


@reports_errors
def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these.")
    ] = None,
    results: Results = DEFAULT_RESULTS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figures go.")] = Path("out"),
) -> None:
    """Draw all figures as PNG and SVG, and say which could not be drawn."""
    known = figures()
    if unknown := [name for name in names or () if name not in known]:
        raise ValueError(f"no figure is named {unknown[0]}; there are {', '.join(known)}")
    wanted = {name: known[name] for name in names or known}
    for name, problem in draw_all(rows.table(store.load(results)), out, wanted):
        if problem is None:
            console.print(f"{name}: {out / name}.png, .svg")
        else:
            console.print(f"{name}: not drawn, {problem}", style="yellow")


if __name__ == "__main__":
    typer.run(main)
