"""What the comparison with the peers found: a table to read, and a file to keep.

asv imports this module too, in environments without asv's own package and pandas: they are imported
where they are used.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import machine
from benchmarks.peers.comparison import NATIVE, OBJECTIVES, Timed
from strategies.measuring import Case, PairedTiming
from strategies.selection import files
from strategies.selection.peers_files import FORMAT, VERSION

Results = list[tuple[Case, list[Timed]]]


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
    peers = list(dict.fromkeys(timed.name for _, every in results for timed in every[2:]))
    from strategies.selection.recommendation import seconds

    lines = [["case", "our best", "ours", NATIVE, *peers]]
    for case, (native, ours, *others) in results:
        by_name = {timed.name: timed for timed in others}
        shown = [_entry(timed, objective) for timed in (native, *(by_name[p] for p in peers))]
        label = case.label.removesuffix(" cpu").removesuffix(" float64")
        lines.append([label, ours.name, seconds(ours.seconds[objective]), *shown])
    return lines


def _entry(timed: Timed, objective: str) -> str:
    from strategies.selection.recommendation import seconds

    if timed.note:
        return "n/a"
    ratio = timed.over_ours[objective]
    return f"{seconds(timed.seconds[objective])} = {_ratio(ratio)}"


def _ratio(timing: PairedTiming) -> str:
    digits = 0 if timing.ratio >= 100 else 1 if timing.ratio >= 10 else 2
    return f"{timing.ratio:.{digits}f}× [{timing.low:.{digits}f}, {timing.high:.{digits}f}]"


def write(path: Path, results: Results, peers: Sequence[str]) -> None:
    """Writes the JSON file that `strategies.selection.rows` reads, and Markdown beside it.

    Raises:
        UnusableFileError: the folder is missing or cannot be written to.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "provenance": _provenance(peers),
        "rows": [
            _case_columns(case) | _timed_columns(timed, every[0])
            for case, every in results
            for timed in every
        ],
    }
    files.write_json(path, content)
    path.with_suffix(".md").write_text(as_markdown(results), encoding="utf-8")


def _provenance(peers: Sequence[str]) -> dict[str, Any]:
    from asv.machine import Machine

    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    versions = {name: importlib.metadata.version(name) for name in peers}
    known = {**Machine.get_defaults(), **machine.description()}
    kept = {key: known[key] for key in ("machine", "cpu", "gpu", "threads", "torch", "blas")}
    started_at = datetime.now(UTC).timestamp() * 1000
    return {"commit": commit, **kept, **versions, "started_at": started_at}


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
            ratio = timed.over_ours[objective]
            columns[f"{objective}_over_ours"] = [ratio.low, ratio.ratio, ratio.high]
    if not timed.note:
        paired = native.over_ours["backward"].ratio
        own = timed.over_ours["backward"].ratio if timed.over_ours else 1.0
        columns["speedup_over_native"] = paired / own
    return columns | ({"note": timed.note} if timed.note else {})
