"""Measuring a case here and now, as rows like those that the suites leave behind."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from strategies.accuracy.measures import gradient_error
from strategies.errors import LinAlgError
from strategies.measuring import (
    Case,
    backward_of,
    forward,
    forward_backward_of,
    paired,
    peak_bytes,
)
from strategies.policy import BASELINE
from strategies.selection.rows import UNIT_ROUNDOFF, tidy

Backward = Callable[[], tuple[Tensor, ...]]

LARGEST_EXACT = 2**24
"""The most multiplications in a matrix product for which the exact gradient takes a second."""

LARGEST_BASELINE_BYTES = 2 * 10**9
"""PyTorch's pinv and lstsq make two matrices of the larger dimension squared; beyond this, skip."""

CHECKED = 4
"""Matrices of a batch whose gradients are compared with exact ones."""


def measure(
    case: Case,
    names: Sequence[str],
    *,
    budget: float = 1.0,
    forward_too: bool = True,
    begins: Callable[[str], None] = lambda _: None,
) -> pd.DataFrame:
    """Runs the strategies on one case, each in turn with a common partner.

    The partner is native, or the first strategy that can do the case where native cannot.

    Args:
        case: what to measure.
        names: the strategies.
        budget: seconds that each comparison may take.
        forward_too: whether to time forward and backward together as well.
        begins: called with the name of every strategy, before its turn.

    Returns:
        Rows as `strategies.selection.rows.load` gives them. `speedup_over_native` is over the
        partner, which keeps the ratios between strategies.
    """
    runnable: dict[str, Backward] = {}
    records: list[dict[str, Any]] = []
    for name in sorted(names, key=lambda name: name != BASELINE):
        try:
            runnable[name] = _warmed_up(case, name)
            records.append({"strategy": name, "status": "ok"})
        except (NotImplementedError, LinAlgError):
            records.append({"strategy": name, "status": "n/a"})
        except (RuntimeError, MemoryError):
            records.append({"strategy": name, "status": "failed"})
    for record in records:
        begins(record["strategy"])
        if record["status"] == "ok":
            partner = next(iter(runnable.values()))
            record.update(_quantities(case, record["strategy"], runnable, partner, budget))
            if forward_too:
                both = forward_backward_of(case, record["strategy"])
                timing = paired(both, both, budget=budget / 4, min_pairs=6)
                record["forward_backward_seconds"] = timing.seconds_f
    return tidy(pd.DataFrame.from_records(records).assign(**_case_columns(case), **_here()))


def question_case(
    operation: str, sizes: dict[str, int | None], batch: int, dtype: str, device: str
) -> Case:
    """The case that a shape in words stands for, its inputs drawn from seed 0.

    Raises:
        ValueError: no such operation or dtype, or a shape that the operation cannot take.
    """
    if dtype not in UNIT_ROUNDOFF:
        raise ValueError(f"unknown dtype {dtype!r}; known: {', '.join(UNIT_ROUNDOFF)}")
    m, n = sizes["m"] or 0, sizes["n"] or 0
    rhs, rank = sizes["rhs"] or 1, sizes["rank"]
    return Case(operation, (m, n), batch, getattr(torch, dtype), device, rhs=rhs, rank=rank)


def _warmed_up(case: Case, name: str) -> Backward:
    m, n = case.shape
    squares = name == BASELINE and case.operation in ("pinv", "lstsq") and m != n
    needed = 2 * max(case.batch, 1) * max(m, n) ** 2 * case.dtype.itemsize
    if squares and needed > LARGEST_BASELINE_BYTES:
        raise NotImplementedError(f"{case.label} is too much for {name}")
    backward = backward_of(case, name)
    backward()
    return backward


def _quantities(
    case: Case, name: str, runnable: dict[str, Backward], partner: Backward, budget: float
) -> dict[str, float]:
    backward = runnable[name]
    timing = paired(partner, backward, budget=budget)
    return {
        "backward_seconds": timing.seconds_g,
        "speedup_over_native": timing.ratio,
        "speedup_over_native_low": timing.low,
        "speedup_over_native_high": timing.high,
        "error": _error(case, backward),
        "peak_bytes": float(peak_bytes(backward, case.device)),
    }


def _error(case: Case, backward: Backward) -> float:
    m, n = case.shape
    if m * n * min(m, n) > LARGEST_EXACT:
        return math.nan
    exact_for = case.inputs()
    cotangents = case.cotangents(forward(case, BASELINE))
    computed = backward()
    if case.batch:
        exact_for, cotangents, computed = (
            tuple(tensor[:CHECKED] for tensor in group)
            for group in (exact_for, cotangents, computed)
        )
    return gradient_error(case.operation, exact_for, cotangents, computed, rank=case.rank)


def _case_columns(case: Case) -> dict[str, Any]:
    m, n = case.shape
    return {
        "operation": case.operation,
        "m": m,
        "n": n,
        "rhs": case.rhs,
        "rank": case.rank,
        "log10_cond": math.nan,
        "batch": case.batch,
        "dtype": str(case.dtype).removeprefix("torch."),
        "device": case.device,
    }


def _here() -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    return {
        "machine": platform.node(),
        "cpu": platform.processor() or platform.machine(),
        "gpu": torch.cuda.get_device_name() if cuda else "",
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "started_at": datetime.now(UTC).timestamp() * 1000,
        "source": "measured now",
    }
