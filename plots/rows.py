"""The result store as one table for the figures: a row for every case and strategy.

Of every machine and case it holds the newest measurement, by operation, and so that single matrices
come before batches, full rank before deficient, small before large. Its columns:

* the case: those of `Case.columns()`; `case`, all of it and the machine, in words; `sizes`, in
  short; `size`, ∛(m n min(m, n)), the n of a square matrix that takes as many multiplications;
  `kappa`, the condition number κ, if no rank is given and errors are shown; `roundoff`, the unit
  roundoff u;
* `shows`, what it was measured for: "time"; "condition", errors at a given κ; "gallery", errors on
  a matrix of the gallery; "peers", time beside other libraries; "stability", ratios in a hard case;
* the measurement: `strategy`, `status`, `error`, `stability`, the worst ratio of results and
  gradients, `peak_bytes`; `seconds` of forward and backward
  together, and `speedup` over native in these, with the ends of its interval as `speedup_low` and
  `speedup_high`; the same of the backward alone as `backward_seconds`, `backward_speedup` and so on;
* where `shows` is "time", the `verdict` by `seconds`, whether it is `chosen`, `ratio`, its
  seconds over those of the fastest eligible strategy, whether that is `too_noisy` to tell, and
  whether the machine was `busy`;
* `machine`, its name, and `measured_on`, all of the `Machine`. What was not measured is NaN.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import torch

from strategies.accuracy import gallery
from strategies.measuring import Case, Cell, Machine, Measurement, Objective
from strategies.measuring.store import Run, newest_cells
from strategies.policy import BASELINE
from strategies.selection.verdicts import judge

_SHOWS = {
    "grid": {},
    "peers": {"shows": "peers"},
    "stability": {"shows": "stability"},
    "peer_stability": {"shows": "stability"},
}
"""What the runs of a kind were measured for, where the case does not say it."""

_ORDER = ["operation", "is_batch", "is_deficient", "size", "m", "n", "rhs", "batch"]


def table(runs: Sequence[Run]) -> pd.DataFrame:
    """All that runs measured on a grid, beside other libraries, and in hard cases; or ValueError."""
    records = [
        {name: math.nan if value is None else value for name, value in record.items()}
        for record in _records(runs)
    ]
    if not records:
        raise ValueError("the results hold nothing that a figure shows")
    return pd.DataFrame(records).sort_values(_ORDER, kind="stable", ignore_index=True)


def _records(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    verdicts = {}
    with contextlib.suppress(ValueError):  # no case was timed
        for found in judge(runs):
            for verdict in found.judged:
                speedup = found.over_native(verdict.strategy, Objective.FORWARD_BACKWARD)
                is_too_noisy = speedup.is_too_noisy or (verdict.chosen and found.is_too_noisy)
                key = "grid", found.machine.name, found.case, verdict.strategy
                verdicts[key] = verdict, is_too_noisy, found.is_busy
    for kind, shows in _SHOWS.items():
        for machine, cell in _newest([run for run in runs if run.kind == kind], kind):
            shared = _case(cell.case) | (shows or _errors(cell.case))
            shared |= {"machine": machine.name, "measured_on": machine}
            for each in cell:
                key = kind, machine.name, cell.case, each.strategy
                judged, is_too_noisy, is_busy = verdicts.get(key, (None, False, False))
                yield {
                    **shared,
                    **_measured(cell, each),
                    "case": f"{cell.case} on {machine.name}",
                    "verdict": judged and judged.verdict,
                    "ratio": judged and judged.ratio,
                    "chosen": judged is not None and judged.chosen,
                    "too_noisy": is_too_noisy,
                    "busy": is_busy,
                }


def _newest(runs: Sequence[Run], kind: str) -> list[tuple[Machine, Cell]]:
    if not kind.endswith("stability"):
        return newest_cells(runs)
    # What is compared with exact results is paired with nothing, and may be of several runs.
    newest = {
        (run.machine.name, cell.case, each.strategy): (run.machine, Cell(cell.case, (each,)))
        for run in runs
        for cell in run.cells
        for each in cell
    }
    return list(newest.values())


def _case(case: Case) -> dict[str, Any]:
    m, n = case.shape
    return {
        **case.columns(),
        "is_batch": case.batch > 0,
        "is_deficient": case.rank is not None,
        "sizes": case.sizes,
        "size": (m * n * min(m, n)) ** (1 / 3),
        "roundoff": torch.finfo(case.dtype).eps / 2,
        "kappa": None,
    }


def _errors(case: Case) -> dict[str, Any]:
    if case.matrix is not None:
        specimen = gallery.make(case.matrix, case.shape, case.dtype, seed=case.seed)
        return {"shows": "gallery", "kappa": specimen.condition}
    kappa = 10.0 ** (1.0 if case.log10_cond is None else case.log10_cond)
    return {
        "shows": "time" if case.log10_cond is None else "condition",
        "kappa": kappa if case.rank is None else None,
    }


def _measured(cell: Cell, each: Measurement) -> dict[str, Any]:
    found = {name: getattr(each, name) for name in ("strategy", "status", "error", "peak_bytes")}
    found["stability"] = each.stability and each.stability.worst
    times = {"": Objective.FORWARD_BACKWARD, "backward_": Objective.BACKWARD}
    for prefix, objective in times.items():
        cost = each.cost(objective)
        found[f"{prefix}seconds"] = cost and cost.seconds
        speedups = cell.speedup(BASELINE, each.strategy, objective)
        names = [f"{prefix}speedup{end}" for end in ("", "_low", "_high")]
        found |= dict(zip(names, speedups, strict=True))
    return found
