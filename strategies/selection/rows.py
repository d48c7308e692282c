"""Measured results as one tidy table: a row for every case and strategy of every run.

The columns, in the order of `COLUMNS`:

* the case: operation, m, n, rhs (columns of B), rank (missing: full), log10_cond (missing: the
  default, κ = 10), matrix (a name of the gallery, whose κ is then log10_cond; else empty), batch
  (0: one matrix), dtype, device;
* strategy, and is_peer for what was measured beside other libraries, which no verdict counts;
* status: ok, n/a, failed or timeout;
* backward_seconds, forward_backward_seconds, speedup_over_native (paired; larger is faster), each
  with the ends of its interval as `…_low` and `…_high`; error (relative, of the gradient),
  test_ratio (error / κ u, where κ is known), peak_bytes. A missing number was not measured;
* provenance: commit, machine, cpu, gpu, threads, torch, started_at (UTC); source, the file that the
  row is from; benchmark, in that file, whose methods' names then follow (those of
  `asv_files.QUANTITIES`), and parameters, that benchmark's, separated by commas.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from strategies.selection.asv_files import Record, load_descriptions, read_asv_file
from strategies.selection.files import UnusableFileError, read_json
from strategies.selection.kept_files import is_kept, kept_records
from strategies.selection.pytest_benchmark_files import (
    is_pytest_benchmark,
    pytest_benchmark_records,
)

CELL = ["operation", "m", "n", "rhs", "rank", "log10_cond", "matrix", "batch", "dtype", "device"]
"""What a case consists of: strategies are compared where all of these agree."""

_TEXT = ["operation", "matrix", "dtype", "device", "strategy", "status", "commit", "machine"]
_TEXT += ["cpu", "gpu", "threads", "torch", "source", "benchmark", "parameters"]
_WHOLE = ["m", "n", "rhs", "rank", "batch"]
_NUMBERS = [
    "log10_cond",
    *(
        f"{quantity}{end}"
        for quantity in ("backward_seconds", "forward_backward_seconds", "speedup_over_native")
        for end in ("", "_low", "_high")
    ),
    *("error", "test_ratio", "peak_bytes"),
]
_PROVENANCE = ["commit", "machine", "cpu", "gpu", "threads", "torch", "started_at", "source"]
_PROVENANCE += ["benchmark", "parameters"]
COLUMNS = [*CELL, "strategy", "is_peer", "status", *_NUMBERS[1:], *_PROVENANCE]

UNIT_ROUNDOFF = {
    "float32": 2.0**-24,
    "complex64": 2.0**-24,
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
}


def load(folder: Path) -> pd.DataFrame:
    """All results in a folder: of asv, pytest-benchmark, the peers and the rounds, wherever they lie.

    Args:
        folder: asv's `results_dir`, a machine's folder in it, or any folder of such files.

    Returns:
        A table of `COLUMNS`, sorted by case; the strategies of a case in the order measured.

    Raises:
        UnusableFileError: there is no result, or one of the files is corrupt, foreign or newer.
            Nothing is skipped: a verdict on half of the evidence would look like any other.
    """
    if not folder.is_dir():
        raise UnusableFileError(folder, "is not a folder of results")
    records: list[Record] = []
    for path in sorted(folder.rglob("*.json")):
        if path.name not in ("machine.json", "benchmarks.json"):
            source = path.relative_to(folder).as_posix()
            records += [record | {"source": source} for record in _read(path)]
    if not records:
        raise UnusableFileError(folder, "holds no results; `make bench` measures some")
    return tidy(pd.DataFrame.from_records(records))


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Gives a table all of `COLUMNS`, with their types, in the order of the cases.

    Args:
        table: at least the case, strategy and status of every row. What else is missing stays so;
            rhs, batch and is_peer default to 1, 0 and False, test_ratio is derived.
    """
    table = table.reindex(columns=COLUMNS)
    table["rhs"] = table["rhs"].fillna(1)
    table["batch"] = table["batch"].fillna(0)
    table["is_peer"] = table["is_peer"].eq(True)
    table[_TEXT] = table[_TEXT].astype("object").fillna("")
    table[_WHOLE] = table[_WHOLE].astype("Int64")
    table[_NUMBERS] = table[_NUMBERS].astype("float64")
    table["started_at"] = pd.to_datetime(table["started_at"], unit="ms", utc=True)
    roundoff = table["dtype"].map(UNIT_ROUNDOFF).astype("float64")
    derived = table["error"] / (10.0 ** table["log10_cond"].fillna(1.0) * roundoff)
    table["test_ratio"] = table["test_ratio"].fillna(derived.where(table["rank"].isna()))
    return table.sort_values(CELL, kind="stable", na_position="first", ignore_index=True)


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every machine and case, the rows of its newest run only.

    The strategies of a case are thereby compared within one run.
    """
    keys = ["machine", "is_peer", *CELL]
    newest = rows.groupby(["source", *keys], dropna=False)["started_at"].max()
    run = rows[["source", *keys]].merge(newest.reset_index(), on=["source", *keys], how="left")
    started = run["started_at"].fillna(pd.Timestamp(0, tz="UTC"))
    rank_key = pd.Series(list(zip(started, run["source"], strict=True)), index=rows.index)
    best = rank_key.groupby([rows[key] for key in keys], dropna=False).transform("max")
    return rows[np.asarray(rank_key == best)].reset_index(drop=True)


def _read(path: Path) -> list[Record]:
    if path.with_name("machine.json").exists():
        # Both places where asv can be run from: the results and one machine of them.
        for folder in (path.parent, path.parent.parent):
            descriptions = load_descriptions(folder)
            if descriptions is not None:
                return read_asv_file(path, descriptions)
        return read_asv_file(path)
    content = read_json(path)
    if is_pytest_benchmark(content):
        return pytest_benchmark_records(path, content)
    if is_kept(content):
        return kept_records(path, content)
    raise UnusableFileError(
        path,
        "is not a result file of asv (no machine.json), pytest-benchmark, benchmarks.peers or "
        "benchmarks.rounds",
    )
