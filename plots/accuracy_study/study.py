"""What the experiments found, as one file: a table an experiment, column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from strategies import files
from strategies.measuring import machine
from strategies.measuring.machine import Machine

__all__ = ["load", "save"]

FORMAT = "backward-strategies accuracy study"
VERSION = 1

_DIGITS = 3
"""Significant digits of every number that is no count."""

_LEFT_OUT = {
    *("measured_on", "case", "status", "verdict", "ratio", "chosen", "too_noisy", "peak_bytes"),
    *("stability", "right_side", "cotangent", "rank", "batch", "is_batch", "is_deficient", "scale"),
    *("seconds", "speedup", "speedup_low", "speedup_high"),
    *(f"backward_{name}" for name in ("seconds", "speedup", "speedup_low", "speedup_high")),
}
"""Columns of `plots.rows` of which neither a table nor a figure here says anything."""


class _Study(msgspec.Struct, frozen=True, kw_only=True):
    format: str = FORMAT
    version: int = VERSION
    machine: Machine
    tables: dict[str, dict[str, list[Any]]]


def save(path: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Writes the tables by their names, with three digits of what is no count."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        name: {
            str(column): [_plain(value) for value in table[column]]
            for column in table.columns
            if column not in _LEFT_OUT
        }
        for name, table in tables.items()
    }
    content = _Study(machine=machine.describe(), tables=columns)
    files.write_text(path, msgspec.json.encode(content).decode())


def load(path: Path) -> dict[str, pd.DataFrame]:
    """The tables by their names; each has the column `measured_on`.

    Raises:
        UnusableFileError: the file is missing, damaged, foreign or of another version.
    """
    study = files.read(path, _Study, FORMAT, VERSION)
    return {
        name: pd.DataFrame(columns | {"measured_on": [study.machine] * len(columns["strategy"])})
        for name, columns in study.tables.items()
    }


def _plain(value: Any) -> Any:
    """What JSON holds: no NaN, and no number of NumPy's."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
