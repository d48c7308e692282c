"""Verdicts for people (rich tables) and for programs (JSON)."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table

from strategies.measuring.case import OPERATIONS
from strategies.selection.files import write_json
from strategies.selection.rows import CELL
from strategies.selection.verdicts import COMPARED, Criteria, Verdict

FORMAT = "backward-strategies recommendation"
VERSION = 1
"""Raised when a field changes its meaning or goes away; new fields do not count."""

PROVENANCE = ["machine", "cpu", "gpu", "threads", "torch", "commit", "source"]
_EVIDENCE = [
    *("strategy", "verdict", "reason", "chosen", "status"),
    *("ratio", "ratio_low", "ratio_high", "paired"),
    *("backward_seconds", "forward_backward_seconds"),
    *("speedup_over_native", "speedup_over_native_low", "speedup_over_native_high"),
    *("error", "test_ratio", "peak_bytes"),
    *("source", "benchmark", "parameters"),
]
_COLOURS = {
    Verdict.BEST: "green",
    Verdict.TIE: "cyan",
    Verdict.SLOWER: "",
    Verdict.INELIGIBLE: "dim",
}


def overview(judged: pd.DataFrame, title: str = "What to use") -> Table:
    """One line a case: the strategy to use, what cannot be told from it, and what it is worth.

    A dtype or device that all cases share stands in the title.
    """
    varying = [name for name in ("dtype", "device") if judged[name].nunique() > 1]
    shared = [judged[name].iloc[0] for name in ("dtype", "device") if name not in varying]
    table = _table(", ".join([title, *shared]))
    for name in ("operation", "case", *varying, "use"):
        table.add_column(name, no_wrap=True)
    table.add_column("as good")
    for name in ("× native", "backward", "error", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    for _, cell in judged.groupby(COMPARED, dropna=False, sort=False):
        first = cell.iloc[0]
        case = (first["operation"], case_text(first), *(first[name] for name in varying))
        table.add_row(*case, *_choice(cell))
    return table


def ranking(cell: pd.DataFrame) -> Table:
    """One line a strategy: everything the verdict on one case rests on."""
    first = cell.iloc[0]
    table = _table(f"{first['operation']} {case_text(first)} {first['dtype']} {first['device']}")
    table.add_column("strategy", no_wrap=True)
    for name in ("× best", "interval", "× native", "backward", "error", "memory"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    for _, row in cell.iterrows():
        verdict = Verdict(row["verdict"])
        note = f"{verdict}: {row['reason']}" if row["reason"] else str(verdict)
        table.add_row(
            f"{row['strategy']} ←" if row["chosen"] else row["strategy"],
            _number(row["ratio"], ".2f"),
            f"{_number(row['ratio_low'], '.2f')}-{_number(row['ratio_high'], '.2f')}",
            _number(row["speedup_over_native"], ".3g"),
            seconds(row["backward_seconds"]),
            _number(row["error"], ".1e"),
            size(row["peak_bytes"]),
            note,
            style=_COLOURS[verdict],
        )
    return table


def _table(title: str) -> Table:
    """Without vertical rules, which would make ten columns wider than the logs they are read in."""
    return Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )


def as_json(judged: pd.DataFrame, criteria: Criteria) -> dict[str, Any]:
    """The recommendation as JSON values: criteria, provenance, and per case all the evidence."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "criteria": asdict(criteria),
        "provenance": provenance(judged),
        "cells": [
            _cell_json(cell) for _, cell in judged.groupby(COMPARED, dropna=False, sort=False)
        ],
    }


def write(judged: pd.DataFrame, criteria: Criteria, path: Path) -> None:
    """Writes `as_json`, in one step.

    Raises:
        UnusableFileError: the place cannot be written to.
    """
    write_json(path, as_json(judged, criteria))


def provenance(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The runs that rows are from, each with its latest start."""
    runs = rows.groupby(PROVENANCE, dropna=False)["started_at"].max().reset_index()
    return [
        {**{name: run[name] for name in PROVENANCE}, "started_at": _date(run["started_at"])}
        for _, run in runs.iterrows()
    ]


def cells_in_order(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The cases as they matter: by operation, single matrices before batches, large before small."""

    def order(cell: pd.DataFrame) -> tuple[float, ...]:
        case = cell.iloc[0]
        work = case["m"] * case["n"] * min(case["m"], case["n"]) * max(case["batch"], 1)
        kind = case["batch"] > 0, not pd.isna(case["rank"])
        return (OPERATIONS.index(case["operation"]), *kind, -work, case["rhs"])

    return sorted((cell for _, cell in rows.groupby(COMPARED, dropna=False)), key=order)


def case_text(row: pd.Series) -> str:
    """A case's sizes in short: "2000 of 16x4", "8192x64 k=16", "512x64 rank=16".

    Example:
        >>> case_text(pd.Series({"m": 8, "n": 4, "rhs": 1, "rank": pd.NA, "batch": 50}))
        '50 of 8x4'
    """
    text = f"{row['batch']} of " if row["batch"] else ""
    text += f"{row['m']}x{row['n']}"
    if row["rhs"] != 1:
        text += f" k={row['rhs']}"
    if not pd.isna(row["rank"]):
        text += f" rank={row['rank']}"
    return text


def seconds(value: float) -> str:
    """A duration with three digits and its unit.

    Example:
        >>> seconds(0.00123)
        '1.23 ms'
    """
    return _scaled(value, (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)))


def size(value: float) -> str:
    """An amount of memory with three digits and its unit.

    Example:
        >>> size(2_500_000)
        '2.5 MB'
    """
    return _scaled(value, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def times(value: float) -> str:
    """A ratio with two digits, or all before the point.

    Example:
        >>> times(1.456), times(145.6)
        ('1.5×', '146×')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.2g}×" if value < 99.5 else f"{value:.0f}×"


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    if math.isnan(value):
        return "-"
    name, factor = next((unit for unit in units if abs(value) >= unit[1]), units[-1])
    return f"{value / factor:.3g} {name}"


def _number(value: float, how: str) -> str:
    return "-" if math.isnan(value) else format(value, how)


def _choice(cell: pd.DataFrame) -> tuple[str, ...]:
    """What the overview says of a case, from "use" on."""
    if not cell["chosen"].any():
        reasons = cell["reason"].unique()
        why = reasons[0] if len(reasons) == 1 else "no strategy is eligible"
        return ("-", str(why), *["-"] * 4)
    row = cell[cell["chosen"]].iloc[0]
    ties = cell[(cell["verdict"] == Verdict.TIE) & ~cell["chosen"]]["strategy"]
    return (
        row["strategy"],
        ", ".join(ties),
        _number(row["speedup_over_native"], ".3g"),
        seconds(row["backward_seconds"]),
        _number(row["error"], ".1e"),
        size(row["peak_bytes"]),
    )


def _cell_json(cell: pd.DataFrame) -> dict[str, Any]:
    first = cell.iloc[0]
    chosen = cell[cell["chosen"]]["strategy"]
    return {
        **{name: _plain(first[name]) for name in CELL if name not in ("log10_cond", "matrix")},
        "machine": first["machine"],
        "chosen": chosen.iloc[0] if len(chosen) else None,
        "strategies": [
            {name: _plain(row[name]) for name in _EVIDENCE} for _, row in cell.iterrows()
        ],
    }


def _plain(value: Any) -> Any:
    """A table's value as JSON knows it."""
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _date(moment: pd.Timestamp) -> str | None:
    return None if pd.isna(moment) else moment.isoformat(timespec="seconds")
