"""The page *Defaults*: which strategy to use, as a table that can be filtered, and the figures."""

import ast
import itertools
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlencode

from asv.graph import Graph, GraphSet
from asv.util import is_na

from plots import rows
from plots.dashboard.offline import ASSETS
from plots.figures import draw_all, figures
from plots.machines import scaling
from plots.style import look
from strategies import registry
from strategies.measuring import Case, Measurement, Objective, Run
from strategies.measuring.grid_cases import case_of
from strategies.policy import BASELINE
from strategies.selection import text
from strategies.selection.eligibility import Criteria
from strategies.selection.verdicts import JudgedCell, judge

FILTERS = ("operation", "dtype", "device", "machine")
COLUMNS = (
    *("operation", "matrix", "dtype", "device", "machine", "use", "as good", f"× {BASELINE}"),
    *("forward + backward", "error", "memory", "by the backward alone"),
)
HEAD = """<meta name="viewport" content="width=device-width">
<link href="defaults.css" rel="stylesheet">
"""
TAB = '<li id="nav-li-defaults"><a href="#defaults">Defaults</a></li>\n'
SCRIPT = '<script src="defaults.js"></script>\n'
SCRIPT_AFTER_ASV = """<script language="javascript" type="text/javascript"
            src="asv_ui.js">"""

Graphs = Mapping[tuple[str, str, Case], str]
"""The addresses of asv's graphs in the dashboard, by machine, benchmark method and case."""


def add(folder: Path, runs: Sequence[Run], graphs: Graphs) -> None:
    """Puts the page into what asv published in `folder`, with verdicts on runs and links to graphs.

    ValueError if the runs hold nothing to recommend; LookupError if asv's page is another.
    """
    additions = {
        "</head>": HEAD,
        # After asv.js, and before the script of the page with the graph, whose first view it sets.
        SCRIPT_AFTER_ASV: SCRIPT,
        '<li id="nav-li-"': TAB,
        '<div id="summarygrid-display"': _body(folder, runs, graphs),
    }
    for asset in ("defaults.js", "defaults.css"):
        shutil.copy(ASSETS / asset, folder)
    index = folder / "index.html"
    page = index.read_text(encoding="utf-8")
    for place, addition in additions.items():
        if page.count(place) != 1:
            raise LookupError(f"asv's page has no place {place} of its own")
        page = page.replace(place, addition + place)
    index.write_text(page, encoding="utf-8")


def graphs_of(benchmarks: Mapping[str, Mapping[str, Any]], recorded: GraphSet) -> Graphs:
    """Where asv, by its descriptions of benchmarks, compares strategies in a case that it recorded."""
    graphs = {}
    for name, description in benchmarks.items():
        if description["param_names"][0] != "strategy":  # of programs, which have no case
            continue
        operation, _, method = name.split(".")
        keys, lists = description["param_names"][1:], description["params"][1:]  # 0: the strategy
        every = list(itertools.product(*lists))
        for graph in recorded.get_graph_group(name):
            machine = graph.params["machine"]
            for chosen in itertools.compress(every, _is_recorded(graph, len(every))):
                query = {"x-axis": "strategy", "y-axis-scale": "log", "machine": machine}
                query |= {f"p-{key}": value for key, value in zip(keys, chosen, strict=True)}
                case = case_of(operation, *map(ast.literal_eval, chosen))
                graphs[machine, method, case] = f"#{name}?{urlencode(query)}"
    return graphs


def _is_recorded(graph: Graph, cases: int) -> list[bool]:
    """Of every case, whether some strategy has a value in some revision."""
    values = [values for _, values, _ in graph.get_data()]
    return [
        any(not is_na(value) for each in values for value in each[case::cases])
        for case in range(cases)
    ]


def _body(folder: Path, runs: Sequence[Run], graphs: Graphs) -> str:
    cells = judge(runs)
    backward = judge(runs, Criteria(Objective.BACKWARD))
    by_backward = {(cell.machine.name, cell.case): cell for cell in backward}
    lines = [_line(cell, by_backward.get((cell.machine.name, cell.case)), graphs) for cell in cells]
    every = [{**cell.case.columns(), "machine": cell.machine.name} for cell in cells]
    frame = rows.table(runs)
    drawn = draw_all(frame, folder / "figures", figures() | scaling.FIGURES)
    provenance = text.provenance(cell.machine for cell in cells)
    return Template((ASSETS / "defaults.html").read_text(encoding="utf-8")).substitute(
        filters=" ".join(_filter(name, {case[name] for case in every}) for name in FILTERS),
        headings="".join(f"<th><button>{name}</button></th>" for name in COLUMNS),
        lines="\n".join(lines),
        colours=escape(json.dumps({name: look(name)["color"] for name in registry.available()})),
        figures="\n".join(_picture(name) for name, problem in drawn if problem is None),
        runs="\n".join(f"<li>{escape(line)}</li>" for line in provenance),
    )


def _line(cell: JudgedCell, by_backward: JudgedCell | None, graphs: Graphs) -> str:
    """A line of the table, whose entries lead to asv's graphs of what they say."""

    def entry(shown: str, method: str = "") -> str:
        address = graphs.get((cell.machine.name, method, cell.case), "")
        return f'<a href="{escape(address)}">{escape(shown)}</a>' if address else escape(shown)

    def quantity(value: float | None, shown: str, method: str = "") -> str:
        """An entry with the number by which lines are sorted."""
        return f'<td data-value="{text.number(value, ".4g")}">{entry(shown, method)}</td>'

    case = {**cell.case.columns(), "machine": cell.machine.name}
    use, speedup, faster = _chosen(cell, Objective.FORWARD_BACKWARD)
    time = use.forward_backward.seconds if use.forward_backward else None
    words = [
        *map(entry, (case["operation"], cell.case.sizes, case["dtype"], case["device"])),
        entry(case["machine"]),
        entry(text.doubtful(use.strategy, cell.is_too_noisy), "time_forward_backward"),
        entry(text.TOO_NOISY if cell.is_too_noisy else ", ".join(cell.ties)),
    ]
    quantities = [
        quantity(speedup, faster),
        quantity(time, text.seconds(time), "time_forward_backward"),
        quantity(use.error, text.number(use.error, ".1e"), "track_gradient_error"),
        quantity(use.peak_bytes, text.size(use.peak_bytes), "track_peak_memory"),
    ]
    alone = quantity(None, text.NOTHING)
    if by_backward:
        other, speedup, faster = _chosen(by_backward, Objective.BACKWARD)
        alone = quantity(speedup, f"{other.strategy} {faster}", "time_backward")
    attributes = " ".join(f'data-{name}="{escape(case[name])}"' for name in FILTERS)
    cells = *(f"<td>{word}</td>" for word in words), *quantities, alone
    return f"<tr {attributes}>{''.join(cells)}</tr>"


def _chosen(cell: JudgedCell, objective: Objective) -> tuple[Measurement, float, str]:
    """The strategy to use, how many times as fast as native it is, and that as a text; or dashes."""
    use = cell.chosen.measurement if cell.chosen else Measurement(text.NOTHING)
    speedup = cell.over_native(use.strategy, objective)
    return use, speedup.ratio, text.doubtful(text.times(speedup.ratio), speedup.is_too_noisy)


def _filter(name: str, values: Collection[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in sorted(values))
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _picture(name: str) -> str:
    file = f"figures/{name}.svg"
    return f'<a href="{file}"><img src="{file}" alt="{name.replace("_", " ")}"></a>'
