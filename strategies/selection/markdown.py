"""Verdicts as a Markdown table, cases by strategies, that a page keeps between two markers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from strategies.policy import BASELINE
from strategies.selection.files import UnusableFileError
from strategies.selection.recommendation import case_text, cells_in_order, seconds, times
from strategies.selection.rows import latest
from strategies.selection.verdicts import Verdict, order

BEGIN = "<!-- recommendation: begin -->"
END = "<!-- recommendation: end -->"

_RUN = ["machine", "dtype", "device"]


def answer(judged: pd.DataFrame, rows: pd.DataFrame, simplest_first: Sequence[str]) -> str:
    """One table for every machine, dtype and device: a line a case, a column a strategy.

    The column of native holds its time, the others speed-ups over it (times where native did not
    run). Bold is the strategy to use, ≈ a tie with it, parentheses say ineligible. What was measured
    beside other libraries follows in tables of its own.

    Args:
        judged: as `verdicts.judge` gives them.
        rows: all results, of which the other libraries' are taken for the same dtypes and devices.
        simplest_first: strategies in the order of the columns; `strategies.available()`.
    """
    runs = list(judged.groupby(_RUN, sort=True))
    tables = [f"{_heading(shown)}\n\n{_verdicts(shown, simplest_first)}" for _, shown in runs]
    peers = latest(rows[rows["is_peer"] & rows["status"].eq("ok") & rows["log10_cond"].isna()])
    for (machine, dtype, device), beside in peers.groupby(_RUN, sort=True):
        if (machine, dtype, device) in dict(runs):
            heading = f"Beside other libraries: {_heading(beside)}"
            tables.append(f"{heading}\n\n{_libraries(beside, simplest_first)}")
    return "\n\n".join(tables)


def put_between_markers(path: Path, text: str) -> None:
    """Replaces what a file holds between `BEGIN` and `END`.

    Raises:
        UnusableFileError: it cannot be read or written, or does not have the markers once each.
    """
    try:
        page = path.read_text(encoding="utf-8")
        if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
            raise UnusableFileError(path, f"lacks a pair of lines {BEGIN} and {END}")
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    except OSError as error:
        raise UnusableFileError(path, f"cannot be read and written ({error.strerror})") from error


def _heading(shown: pd.DataFrame) -> str:
    first = shown.iloc[0]
    hardware = first["cpu"] if first["device"] == "cpu" else first["gpu"]
    parts = [hardware or first["machine"]]
    parts += [f"{first['threads']} threads"] if first["threads"] else []
    parts += [f"torch {first['torch']}"] if first["torch"] else []
    parts += [f"commit {first['commit'][:8]}"] if first["commit"] else []
    started = shown["started_at"].max()
    parts += [] if pd.isna(started) else [started.date().isoformat()]
    return f"**{first['dtype']}, {first['device']}** · " + " · ".join(parts)


def _verdicts(shown: pd.DataFrame, simplest_first: Sequence[str]) -> str:
    strategies = sorted(shown["strategy"].unique(), key=order(simplest_first))
    lines = [
        [*_case(cell), *(_entry(cell[cell["strategy"].eq(name)]) for name in strategies)]
        for cell in cells_in_order(shown)
    ]
    return _table(strategies, lines)


def _libraries(beside: pd.DataFrame, ours: Sequence[str]) -> str:
    """Native's time, and how much faster our best strategy and every other library are."""
    others = sorted(set(beside["strategy"]) - set(ours))
    lines = []
    for cell in cells_in_order(beside):
        of = cell.set_index("strategy")
        native = seconds(of["backward_seconds"].get(BASELINE, math.nan))
        best = of[of.index.isin(ours) & (of.index != BASELINE)]["speedup_over_native"].dropna()
        mine = f"{times(best.iloc[0])} `{best.index[0]}`" if len(best) else "–"
        theirs = (of["speedup_over_native"].get(name, math.nan) for name in others)
        lines.append([*_case(cell), native, mine, *map(times, theirs)])
    return _table([BASELINE, "our best", *others], lines)


def _case(cell: pd.DataFrame) -> tuple[str, str]:
    return f"`{cell['operation'].iloc[0]}`", case_text(cell.iloc[0])


def _entry(measured: pd.DataFrame) -> str:
    """What the table says of a strategy in a case; of none, a dash."""
    if measured.empty:
        return "–"
    row = measured.iloc[0]
    if row["status"] != "ok":
        return "–" if row["status"] == "n/a" else str(row["status"])
    speedup = row["speedup_over_native"]
    is_time = row["strategy"] == BASELINE or math.isnan(speedup)
    text = seconds(row["backward_seconds"]) if is_time else times(speedup)
    if row["chosen"]:
        return f"**{text}**"
    return {Verdict.TIE: f"≈ {text}", Verdict.INELIGIBLE: f"({text})"}.get(row["verdict"], text)


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", "---", *["--:"] * len(columns)]
    table = [["operation", "matrix", *columns], rule, *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)
