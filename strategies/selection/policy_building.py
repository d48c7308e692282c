"""From verdicts to a policy: what to use where, as a file that is looked up at run time.

The format is described in `strategies.policy`, and by `SCHEMA`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from strategies.policy import FORMAT, VERSION
from strategies.selection.files import read_versioned, write_json
from strategies.selection.recommendation import provenance
from strategies.selection.rows import latest
from strategies.selection.verdicts import COMPARED, Criteria, Verdict, breakdowns, judge

_SIZES = ("m", "n", "rhs", "batch", "rank")

_DEFAULT = {
    "type": "object",
    "required": ["strategy", "then", "worst_regret", "geometric_mean_regret", "cells", "uncovered"],
    "properties": {
        "strategy": {"type": "string"},
        "then": {"type": "array", "items": {"type": "string"}},
        "worst_regret": {"type": ["number", "null"]},
        "geometric_mean_regret": {"type": ["number", "null"]},
        "cells": {"type": "integer"},
        "uncovered": {"type": "integer"},
    },
}
_CELL = {
    "type": "object",
    "required": [*_SIZES, "use", "ties", "over_native", "times"],
    "properties": {
        **{name: {"type": "integer", "minimum": 0} for name in ("m", "n", "rhs", "batch")},
        "rank": {"type": ["integer", "null"]},
        "use": {"type": "string"},
        "ties": {"type": "array", "items": {"type": "string"}},
        "over_native": {"type": ["number", "null"]},
        "times": {"type": "object", "additionalProperties": {"type": "number"}},
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
"""The JSON Schema of version 2."""


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
    return read_versioned(path, FORMAT, VERSION, oldest=VERSION, schema=SCHEMA)


def single_default(judged: pd.DataFrame, simplest_first: Sequence[str]) -> dict[str, Any]:
    """The one strategy to keep if only one may be kept, and what that costs.

    A strategy's regret in a case is its cost over that of the fastest eligible one. Fewest cases
    in which it is ineligible come first, then the smallest worst regret.

    Returns:
        strategy; then, the next best in turn; worst_regret and geometric_mean_regret, over the
        cases that it covers; cells, how many have an eligible strategy; uncovered, in how many it
        is not among those.
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
            "then": [],
            "worst_regret": math.nan,
            "geometric_mean_regret": math.nan,
            "cells": 0,
            "uncovered": 0,
        }
    best, *others = sorted(candidates, key=lambda candidate: candidate[:4])
    return best[-1] | {"then": [name for _, _, _, name, _ in others]}


def differences(old: dict[str, Any], new: dict[str, Any]) -> pd.DataFrame:
    """The cells of two policies, side by side.

    Returns:
        operation, device, dtype, the sizes, use_old, use_new (missing where a policy lacks the
        cell), and is_tie: one of them could not tell strategies apart, and the other's choice is
        among those.
    """
    keys = ["operation", "device", "dtype", *_SIZES]
    both = flat(old).merge(flat(new), on=keys, how="outer", suffixes=("_old", "_new"))
    both = both.assign(is_tie=[_is_tie(row) for _, row in both.iterrows()])
    return both[[*keys, "use_old", "use_new", "is_tie"]]


def _is_tie(both: pd.Series) -> bool:
    if pd.isna(both["use_old"]) or pd.isna(both["use_new"]):
        return False
    if both["use_old"] == both["use_new"]:
        return bool(both["ties_old"] or both["ties_new"])
    return both["use_old"] in both["ties_new"] or both["use_new"] in both["ties_old"]


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


def agreement(differing: pd.DataFrame) -> tuple[int, int]:
    """In how many of the cells that both have, and that are no tie, two policies agree.

    Args:
        differing: what `differences` returns.

    Returns:
        How many agree, and of how many.
    """
    both = differing["use_old"].notna() & differing["use_new"].notna()
    decided = differing[both & ~differing["is_tie"]]
    return int((decided["use_old"] == decided["use_new"]).sum()), len(decided)


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
        first = cell.iloc[0]
        rank = "full_rank" if pd.isna(first["rank"]) else "rank_deficient"
        device = first["device"].partition(":")[0]
        cells = table.setdefault(device, {}).setdefault(first["dtype"], {}).setdefault(rank, [])
        entry = entry_of(cell)
        # Several devices of a kind: the first one stands for all.
        if not any(all(known[name] == entry[name] for name in _SIZES) for known in cells):
            cells.append(entry)
    return table


def entry_of(cell: pd.DataFrame) -> dict[str, Any]:
    """What a policy file says of a judged case, in which some strategy is chosen."""
    use = cell[cell["chosen"]].iloc[0]
    ties = cell[(cell["verdict"] == Verdict.TIE) & ~cell["chosen"]]["strategy"]
    eligible = cell[cell["verdict"] != Verdict.INELIGIBLE]
    over_native = float(use["speedup_over_native"])
    return {
        **{name: None if pd.isna(use[name]) else int(use[name]) for name in _SIZES},
        "use": use["strategy"],
        "ties": list(ties),
        "over_native": None if math.isnan(over_native) else round(over_native, 3),
        "times": {
            name: float(f"{ratio:.4g}")
            for name, ratio in zip(eligible["strategy"], eligible["ratio"], strict=True)
        },
    }
