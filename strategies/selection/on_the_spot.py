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

from strategies.accuracy import gradient
from strategies.accuracy.certified import Certified
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
    runnable, statuses = prepare(case, names)
    records: list[dict[str, Any]] = [
        {"strategy": name, "status": status} for name, status in statuses.items()
    ]
    exact = exact_gradient(case)
    for record in records:
        begins(record["strategy"])
        if record["status"] == "ok":
            partner = next(iter(runnable.values()))
            record.update(_quantities(case, runnable[record["strategy"]], partner, exact, budget))
            if forward_too:
                both = forward_backward_of(case, record["strategy"])
                timing = paired(both, both, budget=budget / 4, min_pairs=6)
                record["forward_backward_seconds"] = timing.seconds_f
    return tidy(pd.DataFrame.from_records(records).assign(**case_columns(case), **_provenance()))


def prepare(case: Case, names: Sequence[str]) -> tuple[dict[str, Backward], dict[str, str]]:
    """Builds every strategy's graph of a case and runs its backward once.

    Returns:
        The backwards of those that can, native first, and the status of all: ok, n/a or failed.
    """
    runnable: dict[str, Backward] = {}
    statuses: dict[str, str] = {}
    for name in sorted(names, key=lambda name: name != BASELINE):
        try:
            runnable[name] = _warmed_up(case, name)
            statuses[name] = "ok"
        except (NotImplementedError, LinAlgError):
            statuses[name] = "n/a"
        except (RuntimeError, MemoryError):
            statuses[name] = "failed"
    return runnable, statuses


def exact_gradient(case: Case) -> Certified | None:
    """The exact gradient of a case, of a batch's first matrices; None where it takes too long."""
    m, n = case.shape
    if m * n * min(m, n) > LARGEST_EXACT:
        return None
    inputs, cotangents = case.inputs(), case.cotangents(forward(case, BASELINE))
    if case.batch:
        inputs, cotangents = (tuple(t[:CHECKED] for t in ts) for ts in (inputs, cotangents))
    return gradient(case.operation, inputs, cotangents, rank=case.rank)


def error_of(case: Case, backward: Backward, exact: Certified | None) -> float:
    """The error of what a backward computes against `exact_gradient`; NaN where that is unknown."""
    if exact is None:
        return math.nan
    computed = backward()
    return exact.relative_error(tuple(t[:CHECKED] for t in computed) if case.batch else computed)


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
    case: Case, backward: Backward, partner: Backward, exact: Certified | None, budget: float
) -> dict[str, float]:
    timing = paired(partner, backward, budget=budget)
    return {
        "backward_seconds": timing.seconds_g,
        "speedup_over_native": timing.ratio,
        "speedup_over_native_low": timing.low,
        "speedup_over_native_high": timing.high,
        "error": error_of(case, backward, exact),
        "peak_bytes": float(peak_bytes(backward, case.device)),
    }


def case_columns(case: Case) -> dict[str, Any]:
    """The columns of `rows.CELL` for a case."""
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


def machine() -> dict[str, str]:
    """What times depend on besides the case, as text."""
    return {
        "machine": platform.node(),
        "cpu": platform.processor() or platform.machine(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
    }


def _provenance() -> dict[str, Any]:
    started_at = datetime.now(UTC).timestamp() * 1000
    return {**machine(), "started_at": started_at, "source": "measured now"}
