"""What the comparison with the peers found: a table to read, and a file to keep and to go on from."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from benchmarks import machine
from benchmarks.peers.comparison import NATIVE, OBJECTIVES, PEERS, Timed
from strategies.measuring import Case
from strategies.selection import files
from strategies.selection.recommendation import seconds, times

Results = dict[Case, list[Timed]]


def as_table(results: Results, objective: str) -> Table:
    """Times, and ratios over ours with their 95 % intervals, for the terminal."""
    head, *lines = _cells(results, objective)
    table = Table(title=objective.replace("_", " + "), title_justify="left")
    for name in head:
        table.add_column(name, justify="left" if name in head[:2] else "right")
    for line in lines:
        table.add_row(*line)
    return table


def as_markdown(results: Results) -> str:
    """Both objectives as Markdown tables."""
    parts = []
    for objective in OBJECTIVES:
        head, *lines = _cells(results, objective)
        rule = ["---", "---", *["--:"] * (len(head) - 2)]
        rows = ["| " + " | ".join(line) + " |" for line in [head, rule, *lines]]
        parts.append("\n".join([f"**{objective.replace('_', ' + ')}**", "", *rows]))
    return "\n\n".join(parts) + "\n"


def _cells(results: Results, objective: str) -> list[list[str]]:
    found = {timed.name for every in results.values() for timed in every}
    others = [name for name in (NATIVE, *PEERS) if name in found]
    lines = [["case", "our best", "ours", *others]]
    for case, every in results.items():
        by_name = {timed.name: timed for timed in every}
        label = case.label.removesuffix(" cpu").removesuffix(" float64")
        shown = [_entry(by_name[name], objective) for name in others]
        lines.append([label, *_best(every, objective), *shown])
    return lines


def _best(every: list[Timed], objective: str) -> tuple[str, str]:
    """Our best strategy at an objective, and what it takes."""
    for timed in every:
        if timed.name not in (NATIVE, *PEERS) and objective in timed.seconds:
            return timed.name, seconds(timed.seconds[objective])
    return "n/a", "n/a"


def _entry(timed: Timed, objective: str) -> str:
    if timed.note:
        return "n/a"
    low, ratio, high = timed.over_ours[objective]
    interval = f"{times(ratio)} [{times(low)}, {times(high)}]"
    return f"{seconds(timed.seconds[objective])} = {interval}"


def provenance(peers: Sequence[str]) -> dict[str, Any]:
    """Where and with what is measured."""
    versions = {name: importlib.metadata.version(name) for name in peers}
    return machine.provenance() | {"libraries": versions}


def write(path: Path, content: dict[str, Any], results: Results) -> None:
    """Writes the JSON file that `strategies.selection.rows` reads, and Markdown beside it.

    Args:
        path: of the JSON file; it is replaced in one step.
        content: of the file before, whose rows are replaced.
        results: so far.

    Raises:
        UnusableFileError: the folder is missing or cannot be written to.
    """
    rows = [
        _case_columns(case) | _timed_columns(timed, every[0])
        for case, every in results.items()
        for timed in every
    ]
    files.write_json(path, content | {"rows": rows})
    path.with_suffix(".md").write_text(as_markdown(results), encoding="utf-8")


def results_of(content: dict[str, Any]) -> Results:
    """What the rows of a file say."""
    results: Results = {}
    for row in content["rows"]:
        took = {o: row[name] for o in OBJECTIVES if (name := f"{o}_seconds") in row}
        ratios = {o: tuple(row[name]) for o in OBJECTIVES if (name := f"{o}_over_ours") in row}
        timed = Timed(row["strategy"], took, ratios, row.get("note", ""))
        results.setdefault(_case_of(row), []).append(timed)
    return results


def _case_of(row: dict[str, Any]) -> Case:
    dtype = getattr(torch, row["dtype"])
    shape = (row["m"], row["n"])
    return Case(row["operation"], shape, row["batch"], dtype, row["device"], rhs=row["rhs"])


def _case_columns(case: Case) -> dict[str, Any]:
    m, n = case.shape
    return {
        "operation": case.operation,
        "m": m,
        "n": n,
        "rhs": case.rhs,
        "batch": case.batch,
        "dtype": str(case.dtype).removeprefix("torch."),
        "device": case.device,
    }


def _timed_columns(timed: Timed, native: Timed) -> dict[str, Any]:
    columns: dict[str, Any] = {"strategy": timed.name, "status": "n/a" if timed.note else "ok"}
    for objective, value in timed.seconds.items():
        columns[f"{objective}_seconds"] = value
        if objective in timed.over_ours:
            columns[f"{objective}_over_ours"] = list(timed.over_ours[objective])
    if timed.note:
        return columns | {"note": timed.note}
    if native.over_ours and "backward" in timed.seconds:
        columns |= _speedup(timed, native)
    return columns


def _speedup(timed: Timed, native: Timed) -> dict[str, float]:
    """How often faster than native, both being relative to ours; the interval holds it if both do."""
    ours = (1.0, 1.0, 1.0)
    low, ratio, high = native.over_ours["backward"]
    its_low, its_ratio, its_high = timed.over_ours.get("backward", ours)
    ends = ours if timed is native else (low / its_high, ratio / its_ratio, high / its_low)
    names = ("speedup_over_native_low", "speedup_over_native", "speedup_over_native_high")
    return dict(zip(names, ends, strict=True))
