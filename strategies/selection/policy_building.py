"""From verdicts to a policy: what to use where, as a file that is looked up at run time.

The format is described in `strategies.policy`, and by `SCHEMA`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd

from strategies.policy import FORMAT, VERSION
from strategies.selection.files import UnusableFileError, read_versioned, write_json
from strategies.selection.recommendation import provenance
from strategies.selection.rows import latest
from strategies.selection.verdicts import COMPARED, Criteria, Verdict, breakdowns, judge

_SIZES = ("m", "n", "rhs", "batch", "rank")

_DEFAULT = {
    "type": "object",
    "required": ["strategy", "worst_regret", "geometric_mean_regret", "cells", "uncovered"],
    "properties": {
        "strategy": {"type": "string"},
        "worst_regret": {"type": ["number", "null"]},
        "geometric_mean_regret": {"type": ["number", "null"]},
        "cells": {"type": "integer"},
        "uncovered": {"type": "integer"},
    },
}
_CELL = {
    "type": "object",
    "required": [*_SIZES, "use", "ties", "over_native"],
    "properties": {
        **{name: {"type": "integer", "minimum": 0} for name in ("m", "n", "rhs", "batch")},
        "rank": {"type": ["integer", "null"]},
        "use": {"type": "string"},
        "ties": {"type": "array", "items": {"type": "string"}},
        "over_native": {"type": ["number", "null"]},
    },
}
_BY_RANK = {"type": "object", "additionalProperties": {"type": "array", "items": _CELL}}
_BY_DTYPE = {"type": "object", "additionalProperties": _BY_RANK}
_OPERATION = {
    "type": "object",
    "required": ["default", "unstable", "cells"],
    "properties": {
        "unstable": {"type": "object", "additionalProperties": {"type": "object"}},
        "default": {"type": "object", "additionalProperties": _DEFAULT},
        "cells": {"type": "object", "additionalProperties": _BY_DTYPE},
    },
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["format", "version", "criteria", "provenance", "operations"],
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "criteria": {"type": "object"},
        "provenance": {"type": "array", "items": {"type": "object"}},
        "operations": {"type": "object", "additionalProperties": _OPERATION},
    },
}
"""The JSON Schema of version 1."""


def build(rows: pd.DataFrame, simplest_first: Sequence[str], criteria: Criteria) -> dict[str, Any]:
    """The policy that follows from measurements.

    Args:
        rows: as `strategies.selection.rows.load` gives them; of one machine.
        simplest_first: the order in which ties are given, and single defaults preferred.
        criteria: what is asked of a strategy.

    Raises:
        ValueError: the rows are of several machines, which may well disagree, or hold no time.
    """
    machines = sorted(rows["machine"].unique())
    if len(machines) > 1:
        raise ValueError(
            f"results of several machines ({', '.join(machines)}): a policy is of one; "
            "give one machine's folder as --results"
        )
    unstable: dict[str, dict[str, dict[str, str]]] = {}
    for (operation, dtype, name), why in breakdowns(latest(rows), criteria.accuracy).items():
        unstable.setdefault(operation, {}).setdefault(dtype, {})[name] = why
    judged = judge(rows, simplest_first, criteria)
    return {
        "format": FORMAT,
        "version": VERSION,
        "criteria": asdict(criteria),
        "provenance": provenance(judged),
        "operations": {
            str(operation): {
                "default": _defaults(cases, simplest_first),
                "unstable": unstable.get(str(operation), {}),
                "cells": _cells(cases),
            }
            for operation, cases in judged.groupby("operation", sort=True)
        },
    }


def write(policy: dict[str, Any], path: Path) -> None:
    """Writes a policy in one step.

    Raises:
        UnusableFileError: the place cannot be written to.
    """
    write_json(path, policy)


def read(path: Path) -> dict[str, Any]:
    """Reads a policy and checks it against `SCHEMA`.

    Raises:
        UnusableFileError: not a policy, a damaged one, or one of a newer version.
    """
    policy = read_versioned(path, FORMAT, VERSION)
    try:
        jsonschema.validate(policy, SCHEMA)
    except jsonschema.ValidationError as error:
        raise UnusableFileError(
            path, f"is damaged at {error.json_path}: {error.message}"
        ) from error
    return policy


def single_default(judged: pd.DataFrame, simplest_first: Sequence[str]) -> dict[str, Any]:
    """The one strategy to keep if only one may be kept, and what that costs.

    A strategy's regret in a case is its cost over that of the fastest eligible one. Fewest cases
    in which it is ineligible come first, then the smallest worst regret.

    Returns:
        strategy; worst_regret and geometric_mean_regret, over the cases that it covers; cells,
        how many have an eligible strategy; uncovered, in how many it is not among those.
    """
    cells = judged.groupby(COMPARED, dropna=False, sort=False)["chosen"].transform("any")
    judged = judged[cells]
    count = int(judged["chosen"].sum())
    eligible = judged[judged["verdict"] != Verdict.INELIGIBLE]
    order = {name: rank for rank, name in enumerate(simplest_first)}
    candidates = []
    for name, rows in eligible.groupby("strategy"):
        ratios = rows["ratio"].to_numpy(dtype=float)
        summary = {
            "strategy": str(name),
            "worst_regret": float(ratios.max()),
            "geometric_mean_regret": float(np.exp(np.log(ratios).mean())),
            "cells": count,
            "uncovered": count - len(ratios),
        }
        rank = order.get(str(name), len(order))
        candidates.append((summary["uncovered"], summary["worst_regret"], rank, name, summary))
    if not candidates:
        return {
            "strategy": simplest_first[0],
            "worst_regret": math.nan,
            "geometric_mean_regret": math.nan,
            "cells": 0,
            "uncovered": 0,
        }
    return min(candidates, key=lambda candidate: candidate[:4])[-1]


def differences(old: dict[str, Any], new: dict[str, Any]) -> pd.DataFrame:
    """The cells of two policies, side by side.

    Returns:
        operation, device, dtype, the sizes, use_old, use_new (missing where a policy lacks the
        cell), and is_tie: either choice is among the other policy's ties.
    """
    keys = ["operation", "device", "dtype", *_SIZES]
    both = flat(old).merge(flat(new), on=keys, how="outer", suffixes=("_old", "_new"))
    ties = [
        any(
            choice in found
            for choice, found in ((old_use, new_ties), (new_use, old_ties))
            if isinstance(found, list)
        )
        for old_use, new_use, old_ties, new_ties in zip(
            both["use_old"], both["use_new"], both["ties_old"], both["ties_new"], strict=True
        )
    ]
    return both.assign(is_tie=ties)[[*keys, "use_old", "use_new", "is_tie"]]


def flat(policy: dict[str, Any]) -> pd.DataFrame:
    """A policy's cells as a table, a row each."""
    records = [
        {"operation": operation, "device": device, "dtype": dtype, **cell}
        for operation, entry in policy["operations"].items()
        for device, by_dtype in entry["cells"].items()
        for dtype, by_rank in by_dtype.items()
        for cells in by_rank.values()
        for cell in cells
    ]
    columns = ["operation", "device", "dtype", *_CELL["required"]]
    table = pd.DataFrame.from_records(records, columns=columns)
    return table.astype(dict.fromkeys(_SIZES, "Int64"))


def _defaults(rows: pd.DataFrame, simplest_first: Sequence[str]) -> dict[str, Any]:
    full_rank = rows["rank"].isna()
    defaults = {}
    if full_rank.any():
        defaults["full_rank"] = single_default(rows[full_rank], simplest_first)
    if not full_rank.all():
        defaults["any_rank"] = single_default(rows, simplest_first)
    return defaults


def _cells(rows: pd.DataFrame) -> dict[str, Any]:
    """By kind of device, dtype and kind of rank, the cells that have an eligible strategy."""
    table: dict[str, Any] = {}
    for _, cell in rows.groupby(COMPARED, dropna=False, sort=False):
        if not cell["chosen"].any():
            continue
        use = cell[cell["chosen"]].iloc[0]
        rank = "full_rank" if pd.isna(use["rank"]) else "rank_deficient"
        device = use["device"].partition(":")[0]
        cells = table.setdefault(device, {}).setdefault(use["dtype"], {}).setdefault(rank, [])
        ties = cell[(cell["verdict"] == Verdict.TIE) & ~cell["chosen"]]["strategy"]
        entry = {name: None if pd.isna(use[name]) else int(use[name]) for name in _SIZES}
        # Several devices of a kind: the first one stands for all.
        if not any(all(known[name] == entry[name] for name in _SIZES) for known in cells):
            over_native = float(use["speedup_over_native"])
            cells.append(
                entry
                | {"use": use["strategy"], "ties": list(ties)}
                | {"over_native": None if math.isnan(over_native) else round(over_native, 3)}
            )
    return table
