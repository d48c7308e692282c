"""`python -m plots.accuracy_study measure FILE`, and `draw FILE --figures DIR`: tables and figures."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import strategies
from plots import error_against_conditioning, error_against_size, error_over_gallery, marked
from plots.accuracy_study import experiments, study
from plots.figures import save
from strategies.cli.common import reports_errors
from strategies.selection.text import number

app = typer.Typer(help="The study behind docs/accuracy.md.", no_args_is_help=True)

EXPERIMENTS = {
    "conditioned": experiments.conditioned,
    "gallery": experiments.over_gallery,
    "sized": experiments.sized,
    "kahan": experiments.kahan,
    "residuals": experiments.residuals,
    "truncation": experiments.truncation,
    "singular_det": experiments.singular_det,
}
"""By the name of its table."""

File = Annotated[Path, typer.Argument(metavar="FILE", help="The tables, as .json.gz.")]


@app.command()
@reports_errors
def measure(out: File) -> None:
    """Run the experiments, in some minutes, and keep their tables."""
    try:
        study.save(out, {name: experiment() for name, experiment in EXPERIMENTS.items()})
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the study starts anew") from None


@app.command()
@reports_errors
def draw(
    kept: File, figures: Annotated[Path, typer.Option(metavar="DIR")] = Path("out/figures")
) -> None:
    """Print the tables as Markdown, and draw the figures."""
    tables = study.load(kept)
    errors = tables["conditioned"]
    medians = _medians(errors, ["operation", "dtype", "log10_cond", "strategy"])
    for dtype, rows in medians.groupby("dtype"):
        shown = rows[rows["log10_cond"].isin([1, 3, 5, 7, 9, 12, 15])]
        _compare(f"Median error against κ, {dtype}", shown, ["operation", "log10_cond"])
        save(error_against_conditioning.draw, rows, figures / f"error_against_conditioning_{dtype}")
    _print("Error of explicit_inverse / error of triangular_solve, medians", _inverse(errors))
    title = "Largest κ = 10^j at which an error is below 10 %, float32"
    usable = medians.query("dtype == 'float32' and error < 0.1")
    _compare(title, usable, ["operation"], "log10_cond")

    named = tables["gallery"]
    named["ratio"] = named["error"] / (named["kappa"] * named["roundoff"])
    title = "Error / κ u on the gallery, float64: the largest of all operations"
    _compare(title, named, ["matrix"], "ratio")
    growth = named[named["matrix"].eq("wilkinson_growth")]
    _compare("Error / κ u on Wilkinson's matrix", growth, ["operation"], "ratio")
    save(error_over_gallery.draw, named, figures / "error_over_gallery_float64")

    sized = tables["sized"]
    _compare("Error against size at κ = 10, float64, largest of all operations", sized, ["n"])
    save(error_against_size.draw, sized, figures / "error_against_size_float64")

    kahan = tables["kahan"]
    added = kahan[kahan["kind"].eq(experiments.ADDED)]
    _compare("LU of Kahan's matrix, float64: what the backward adds", added, ["n"])
    save(experiments.draw_kahan, kahan, figures / "added_on_kahan")

    noisy = _medians(tables["residuals"], ["kind", "log10_cond", "strategy"])
    for kind, rows in noisy.groupby("kind", sort=False):
        _compare(f"lstsq 80x10, float32, {kind}", rows, ["log10_cond"])
    save(experiments.draw_residuals, noisy, figures / "lstsq_residuals")

    title = "Truncating above κ: pinv 80x10, float64, κ = 1e8"
    _compare(title, tables["truncation"], ["rtol", "kept of 10"])
    det = tables["singular_det"]
    _print("det of [[2, 4], [3, 6]]: the gradient", det[["strategy", "gradient"]])


def _medians(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for all seeds of a case."""
    median = rows.groupby(keys)["error"].transform("median")
    return rows.assign(error=median).drop_duplicates(keys)


def _inverse(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["log10_cond"].isin([1, 3, 5, 7, 9, 12])]
    keys = ["dtype", "operation", "log10_cond"]
    errors = rows.pivot(index=[*keys, "seed"], columns="strategy", values="error")
    ratio = errors["explicit_inverse"] / errors["triangular_solve"]
    return ratio.groupby(keys).median().unstack().rename(columns="κ=1e{:.0f}".format).reset_index()


def _compare(title: str, rows: pd.DataFrame, index: list[str], values: str = "error") -> None:
    """Prints a table with a column a strategy, of the largest value of each line."""
    table = rows.pivot_table(values, index, "strategy", aggfunc="max", sort=False)
    table = table.reindex(columns=[name for name in strategies.available() if name in table])
    _print(title, table.reset_index())


def _print(title: str, table: pd.DataFrame) -> None:
    lines = [
        [number(each, ".2g") if isinstance(each, float) else str(each) for each in line]
        for line in table.to_numpy(object).tolist()
    ]
    print(f"\n**{title}**\n\n{marked.table([*table.columns], lines, left=table.shape[1])}")


if __name__ == "__main__":
    app()
