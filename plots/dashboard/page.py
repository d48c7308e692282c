"""The page *Defaults*: the recommendation as a table that can be filtered, and the figures."""

from __future__ import annotations

import ast
import html
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd

import strategies
from plots.__main__ import draw_all
from plots.dashboard.offline import ASSETS
from strategies.selection import recommendation, rows, verdicts
from strategies.selection.asv_files import OPERATION_OF_MODULE, parse_shape
from strategies.selection.recommendation import case_text

Benchmarks = Mapping[str, Mapping[str, Any]]

FILTERS = ("operation", "dtype", "device")

_COLUMNS = (
    *("operation", "matrix", "dtype", "device", "use", "as good"),
    *("× native", "backward", "error", "memory"),
)

_SCRIPT_AFTER_ASV = """<script language="javascript" type="text/javascript"
            src="asv_ui.js">"""

_GRAPHS = {
    "use": "time_backward",
    "speedup": "track_speedup_over_native",
    "backward": "time_backward",
    "error": "track_gradient_error",
    "memory": "track_peak_memory",
}
"""The benchmark method whose graph an entry of the table leads to."""


def add(folder: Path, results: Path, benchmarks: Benchmarks) -> None:
    """Puts the page into asv's in `folder`.

    Raises:
        ValueError: the results cannot be read, or hold nothing to recommend.
        LookupError: asv's page is not the one that this was written for.
    """
    measured = rows.load(results)
    judged = verdicts.judge(measured, strategies.available())
    figures = folder / "figures"
    drawn = [name for name, problem in draw_all(rows.latest(measured), figures) if problem is None]
    for asset in ("defaults.js", "defaults.css"):
        shutil.copy(ASSETS / asset, folder)
    index = folder / "index.html"
    page = index.read_text(encoding="utf-8")
    for place, addition in (
        ("</head>", '<meta name="viewport" content="width=device-width">\n'),
        ("</head>", '<link href="defaults.css" rel="stylesheet">\n'),
        # After asv.js, and before the script of the page with the graph, whose first view it sets.
        (_SCRIPT_AFTER_ASV, '<script src="defaults.js"></script>\n'),
        ('<li id="nav-li-"', '<li id="nav-li-defaults"><a href="#defaults">Defaults</a></li>\n'),
        ('<div id="summarygrid-display"', _body(judged, benchmarks, drawn)),
    ):
        if page.count(place) != 1:
            raise LookupError(f"asv's page has no place {place} of its own")
        page = page.replace(place, addition + place)
    index.write_text(page, encoding="utf-8")


def _body(judged: pd.DataFrame, benchmarks: Benchmarks, figures: list[str]) -> str:
    lines = "\n".join(_line(cell, benchmarks) for cell in recommendation.cells_in_order(judged))
    filters = " ".join(_filter(name, judged[name].unique().tolist()) for name in FILTERS)
    headings = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    pictures = "\n".join(
        f'<a href="figures/{name}.svg"><img src="figures/{name}.svg" alt="{name.replace("_", " ")}"></a>'
        for name in figures
    )
    return f"""
<div id="defaults-display">
<h1>Which strategy to use</h1>
<p>{filters} <span id="defaults-count"></span></p>
<div class="defaults-scroll">
<table class="table table-condensed">
<thead><tr>{headings}</tr></thead>
<tbody>
{lines}
</tbody>
</table>
</div>
<p>The fastest strategy whose error is at most ten times the best; what cannot be told from it is
as good, and of those the simplest is used. Every entry leads to its graph.</p>
<h2>Figures</h2>
<div class="defaults-figures">
{pictures}
</div>
<h2>Measured on</h2>
<ul id="defaults-provenance">
{_provenance(judged)}
</ul>
</div>
"""


def _filter(name: str, values: list[str]) -> str:
    options = "".join(f"<option>{html.escape(value)}</option>" for value in sorted(values))
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _line(cell: pd.DataFrame, benchmarks: Benchmarks) -> str:
    first = cell.iloc[0]
    attributes = " ".join(f'data-{name}="{html.escape(first[name])}"' for name in FILTERS)
    chosen = cell[cell["chosen"]]
    ties = cell[cell["verdict"].eq(verdicts.Verdict.TIE) & ~cell["chosen"]]["strategy"]
    texts = dict.fromkeys(_GRAPHS, "–")
    if len(chosen):
        row = chosen.iloc[0]
        texts = {
            "use": row["strategy"],
            "speedup": recommendation.times(row["speedup_over_native"]),
            "backward": recommendation.seconds(row["backward_seconds"]),
            "error": "–" if pd.isna(row["error"]) else f"{row['error']:.1e}",
            "memory": recommendation.size(row["peak_bytes"]),
        }
    entries = {
        name: _linked(text, first, _GRAPHS[name], benchmarks) for name, text in texts.items()
    }
    columns = [first["operation"], case_text(first), first["dtype"], first["device"]]
    columns += [entries.pop("use"), ", ".join(ties), *entries.values()]
    return f"<tr {attributes}>" + "".join(f"<td>{column}</td>" for column in columns) + "</tr>"


def _linked(text: str, case: pd.Series, method: str, benchmarks: Benchmarks) -> str:
    href = graph_of(case, method, benchmarks)
    return f'<a href="{html.escape(href)}">{html.escape(text)}</a>' if href else html.escape(text)


def graph_of(case: pd.Series, method: str, benchmarks: Benchmarks) -> str | None:
    """The address in the dashboard where all strategies are compared in a case; None without one.

    Args:
        case: operation, sizes, dtype, device and machine, as in a row of results.
        method: of the suites, for example "time_backward".
        benchmarks: asv's descriptions of them.
    """
    for name, selected in _candidates(case, method, benchmarks):
        query = {"x-axis": "strategy", "y-axis-scale": "log", "machine": case["machine"]}
        return f"#{name}?" + urlencode(query | {f"p-{key}": text for key, text in selected.items()})
    return None


def _candidates(
    case: pd.Series, method: str, benchmarks: Benchmarks
) -> Iterator[tuple[str, dict[str, str]]]:
    """The benchmarks that measured a case, each with the values of its parameters as asv has them."""
    for name, description in benchmarks.items():
        module = name.split(".")[0]
        if not name.endswith("." + method) or "log10_cond" in description["param_names"]:
            continue
        if OPERATION_OF_MODULE.get(module, module) != case["operation"]:
            continue
        selected = {
            key: text
            for key, texts in zip(description["param_names"], description["params"], strict=True)
            for text in texts
            if key != "strategy" and _is_of(case, key, ast.literal_eval(text))
        }
        if len(selected) == len(description["param_names"]) - 1:
            yield name, selected


def _is_of(case: pd.Series, key: str, value: Any) -> bool:
    if key != "shape":
        return bool(case[key] == value)
    sizes = {
        name: None if pd.isna(case[name]) else case[name] for name in ("m", "n", "rhs", "rank")
    }
    # The gallery's matrices share the column; they are judged, not timed.
    return " matrix=" not in value and parse_shape(value) == sizes


def _provenance(judged: pd.DataFrame) -> str:
    runs = []
    for run in recommendation.provenance(judged):
        parts = [run["machine"], run["cpu"], run["gpu"]]
        parts += [f"{run['threads']} threads" if run["threads"] else ""]
        parts += [f"torch {run['torch']}" if run["torch"] else "", f"commit {run['commit'][:8]}"]
        parts += [run["started_at"] or ""]
        runs.append(f"<li>{html.escape(' · '.join(part for part in parts if part))}</li>")
    return "\n".join(runs)
