"""What the experiments found, as one file: a table an experiment, column by column."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from strategies.files.documents import Document
from strategies.files.writing import write_text
from strategies.measuring import Machine, machine

_DIGITS = 3
"""Significant digits of every number that is no count."""

_KEPT = {
    *("operation", "m", "n", "rhs", "log10_cond", "matrix", "dtype", "device", "seed"),
    *("sizes", "size", "roundoff", "kappa", "shows", "machine", "strategy", "error"),
    *("kind", "rtol", "kept of 10", "gradient"),
}
"""Columns of which a table or a figure here says something: of `plots.rows`, and the experiments' own."""


class _Study(Document, frozen=True, kw_only=True):
    format: str = "backward-strategies accuracy study"
    version: int = 1
    machine: Machine
    tables: dict[str, dict[str, list[Any]]]


def save(path: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Writes the tables by their names, with three digits of what is no count."""
    columns = {
        name: {str(column): [*map(_plain, table[column])] for column in table if column in _KEPT}
        for name, table in tables.items()
    }
    content = _Study(machine=machine.describe(), tables=columns)
    write_text(path, msgspec.json.encode(content).decode(), parents=True)


def load(path: Path) -> dict[str, pd.DataFrame]:
    """The tables by their names, each with the column `measured_on`; or UnusableFileError."""
    study = _Study.read(path)
    return {
        name: pd.DataFrame(columns | {"measured_on": [study.machine] * len(columns["strategy"])})
        for name, columns in study.tables.items()
    }


def _plain(value: Any) -> Any:
    """What JSON holds: no NaN, and no number of NumPy's."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
