"""`python -m plots.stability_table PAGE`: the stability ratios over hard cases, as tables in a page."""

from collections.abc import Callable, Mapping

import pandas as pd
import typer

from plots import marked, style
from plots.rows import table
from plots.stability import LIBRARIES
from strategies import registry
from strategies.cli.common import DEFAULT_RESULTS, Results, reports_errors
from strategies.measuring import store
from strategies.policy.schema import LIMIT, WORST_RATIO, in_words
from strategies.selection.text import NOTHING, provenance


@reports_errors
def main(page: marked.Page, results: Results = DEFAULT_RESULTS) -> None:
    """Replace what a page holds between its two markers by what the results say now."""
    marked.fill(page, {"stability": tables(table(store.load(results)))})


def tables(rows: pd.DataFrame) -> str:
    """Two Markdown tables, an operation a line: the libraries, and all strategies."""
    rows = rows[rows["shows"].eq("stability")]
    if rows.empty:
        raise style.NotDrawableError("no hard case was judged")
    libraries = [name for name in LIBRARIES if rows["strategy"].eq(name).any()]
    strategies = [name for name in registry.built_in() if rows["strategy"].eq(name).any()]
    blocks = [
        "**Libraries**: cases above the limit, the worst ratio, and cases refused.",
        _markdown(rows, {name: LIBRARIES[name] for name in libraries}, counts),
        "**Strategies**: the worst ratio, bold above the limit.",
        _markdown(rows, {name: f"`{name}`" for name in strategies}, _worst),
        "Measured on: " + "; ".join(provenance(rows["measured_on"])) + ".",
    ]
    return "\n\n".join(blocks)


def _markdown(
    rows: pd.DataFrame, columns: Mapping[str, str], entry: Callable[[pd.DataFrame], str]
) -> str:
    """A line an operation, a column a strategy, its entry made from its rows."""
    lines = []
    for operation, own in rows.groupby("operation", sort=False):
        by_name = (own[own["strategy"].eq(name)] for name in columns)
        entries = (NOTHING if found.empty else entry(found) for found in by_name)
        lines.append([f"`{operation}`", *entries])
    return marked.table(["operation", *columns.values()], lines, 1)


def counts(rows: pd.DataFrame) -> str:
    """Cases above the limit, of those that were judged, the worst ratio, and cases refused."""
    judged = rows["stability"].dropna()
    refused = f", {len(rows) - len(judged)} refused" if len(judged) < len(rows) else ""
    if judged.empty:
        return refused.removeprefix(", ")
    return f"{judged.gt(LIMIT).sum()} of {len(judged)}, {_ratio(judged.max())}{refused}"


def _worst(rows: pd.DataFrame) -> str:
    worst = rows["stability"].max()
    if not worst >= 0:
        return "refuses"
    return f"**{_ratio(worst)}**" if worst > LIMIT else _ratio(worst)


def _ratio(value: float) -> str:
    return f"{value:.0e}" if LIMIT <= value < WORST_RATIO else in_words(value)


if __name__ == "__main__":
    typer.run(main)
