"""Cases that no grid holds, measured with every strategy, and kept in a file as they come.

A scores file is JSON: what determines the cases (seed, device), where they were measured and with
which strategies, and of each case and strategy the error, the memory, the ratio to native with
its interval, and the seconds of every round, so that any policy can be scored from it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from strategies.measuring import Case, forward_backward_of, peak_bytes
from strategies.measuring.case import SQUARE_ONLY, WITH_RIGHT_HAND_SIDE
from strategies.measuring.clock import median_interval
from strategies.measuring.rounds import in_rounds
from strategies.policy import BASELINE
from strategies.selection import on_the_spot
from strategies.selection.files import UnusableFileError, read_versioned, require_same, write_json
from strategies.selection.rows import CELL, UNIT_ROUNDOFF
from strategies.selection.verdicts import Objective

FORMAT = "backward-strategies regret"
VERSION = 2

OPERATIONS = ("det", "inv", "lstsq", "lu_factor", "pinv", "solve")
DTYPES = ("float32", "float64")
"""What is drawn from, whatever policy is scored: policies are to be compared on the same cases."""

SIDES = (3, 1024)
BATCHES = (2, 20_000)
LARGEST_WORK = 2**27
"""The most multiplications m n min(m, n) · batch in a case: a second's work for a slow strategy."""

LARGEST_INPUT = 2**22
"""The most entries in a case."""

_STRATEGY = {
    "type": "object",
    "required": ["strategy", "status"],
    "properties": {
        "strategy": {"type": "string"},
        "status": {"enum": ["ok", "n/a", "failed"]},
        "screened": {"type": "number"},
        "rounds": {"type": "array", "items": {"type": "number"}},
    },
    "if": {"properties": {"status": {"const": "ok"}}},
    "then": {"required": ["screened", "rounds", "error", "peak_bytes"]},
}
_CASE_COLUMNS = [*CELL[:6], *CELL[7:], "label", "seed"]
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["seed", "device", "objective", "strategies", "machine", "cases"],
    "properties": {
        "cases": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [*_CASE_COLUMNS, "strategies"],
                "properties": {"strategies": {"type": "array", "items": _STRATEGY}},
            },
        },
    },
}
"""The JSON Schema of version 2."""


class Scores:
    """The measured cases of a draw, in memory and, given a path, in a file after every case.

    Args:
        path: a file that is made, or gone on with; None keeps nothing.
        seed: determines the cases.
        device: where they are measured.
        names: the strategies.
        objective: what is measured.

    Raises:
        UnusableFileError: the file is damaged, foreign, newer, or of another draw or of other
            strategies.
    """

    def __init__(
        self, path: Path | None, seed: int, device: str, names: Sequence[str], objective: Objective
    ) -> None:
        self.path = path
        self._head: dict[str, Any] = {
            "seed": seed,
            "device": device,
            "objective": str(objective),
            "strategies": list(names),
        }
        self.machine: dict[str, Any] = on_the_spot.machine()
        self.cases: list[dict[str, Any]] = []
        if path is not None and path.exists():
            kept = read_versioned(path, FORMAT, VERSION, oldest=VERSION, schema=SCHEMA)
            require_same(path, kept, self._head)
            self.machine, self.cases = kept["machine"], kept["cases"]

    def complete(
        self, count: int, budget: float, begins: Callable[[str], None] = lambda _: None
    ) -> list[dict[str, Any]]:
        """The first cases of the draw, those measured that are missing.

        Args:
            count: how many.
            budget: as in `measure`.
            begins: called with the label of every case that is missing, before it is measured.

        Raises:
            UnusableFileError: cases are missing, and those in the file are not of this machine;
                or the file cannot be written.
        """
        drawn = draw_cases(count, self._head["device"], self._head["seed"])
        seeds = [case["seed"] for case in self.cases[:count]]
        if self.path is not None and seeds != [case.seed for case in drawn[: len(seeds)]]:
            raise UnusableFileError(self.path, "holds other cases than are drawn now")
        missing = drawn[len(self.cases) :]
        if missing and self.path is not None:
            require_same(self.path, self.machine, on_the_spot.machine())
        for case in missing:
            begins(case.label)
            found = measure(
                case, self._head["strategies"], Objective(self._head["objective"]), budget
            )
            self.cases.append(found)
            if self.path is not None:
                head = {"format": FORMAT, "version": VERSION, **self._head}
                write_json(self.path, {**head, "machine": self.machine, "cases": self.cases})
        return self.cases[:count]


def draw_cases(count: int, device: str, seed: int) -> list[Case]:
    """Cases that no grid holds: sides, batches and condition numbers drawn log-uniformly.

    Half are single matrices. Condition numbers go as far as a digit is left; one in eight pinv and
    lstsq cases has deficient rank instead. Cases too large to be measured in seconds are drawn
    again. Fewer cases of the same seed are the first of more.

    Example:
        >>> draw_cases(2, "cpu", seed=1) == draw_cases(3, "cpu", seed=1)[:2]
        True
    """
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < count:
        # Operations in turn, so that each has its share however few cases are drawn.
        case = _draw(rng, OPERATIONS[len(cases) % len(OPERATIONS)], device)
        m, n = case.shape
        entries = m * n * max(case.batch, 1)
        if entries * min(m, n) <= LARGEST_WORK and entries <= LARGEST_INPUT:
            cases.append(case)
    return cases


def measure(
    case: Case, names: Sequence[str], objective: Objective, budget: float = 1.0
) -> dict[str, Any]:
    """Runs every strategy on a case, all in turn.

    Args:
        case: what to measure.
        names: the strategies.
        objective: what is measured in every round; memory is counted, and needs one.
        budget: seconds that the rounds may take, beyond the fewest.

    Returns:
        JSON values: the case's columns and label, and `strategies`, of each its name and status,
        and where it ran error, peak_bytes, screened and rounds (each its cost, in seconds or
        bytes), `<objective>_seconds`, and the ratio to native with its interval.
    """
    runnable, statuses = on_the_spot.prepare(case, names)
    exact = on_the_spot.exact_gradient(case)
    found: dict[str, dict[str, Any]] = {
        name: {"strategy": name, "status": status} for name, status in statuses.items()
    }
    for name, backward in runnable.items():
        found[name]["error"] = on_the_spot.error_of(case, backward, exact)
        found[name]["peak_bytes"] = float(peak_bytes(backward, case.device))
    if objective is Objective.MEMORY:
        for name in runnable:
            found[name].update(screened=found[name]["peak_bytes"], rounds=[])
    else:
        calls = runnable
        if objective is Objective.FORWARD_BACKWARD:
            calls = {name: forward_backward_of(case, name) for name in runnable}
        timed = in_rounds(calls, budget=budget)
        for name, screened in timed.screened.items():
            rounds = timed.seconds.get(name, [])
            cost = statistics.median(rounds) if rounds else screened
            found[name].update(screened=screened, rounds=rounds)
            found[name][f"{objective}_seconds"] = cost
    if BASELINE in runnable:
        for name in runnable:
            median, low, high = ratio(found[BASELINE], found[name])
            found[name] |= {
                "speedup_over_native": median,
                "speedup_over_native_low": low,
                "speedup_over_native_high": high,
            }
    return {
        **on_the_spot.case_columns(case),
        "log10_cond": case.log10_cond,
        "label": case.label,
        "seed": case.seed,
        "strategies": list(found.values()),
    }


def ratio(above: Mapping[str, Any], below: Mapping[str, Any]) -> tuple[float, float, float]:
    """Cost of one strategy over another's in the same round: median, and a 95 % interval of it.

    Where one of them sat the rounds out, the screening has to do, and there is no interval.
    """
    ratios = sorted(a / b for a, b in zip(above["rounds"], below["rounds"], strict=False))
    if ratios:
        return (statistics.median(ratios), *median_interval(ratios))
    # Bytes may be zero.
    only = max(above["screened"], 1e-12) / max(below["screened"], 1e-12)
    return only, only, only


def _draw(rng: np.random.Generator, operation: str, device: str) -> Case:
    m = _log_uniform(rng, SIDES)
    n = m if operation in SQUARE_ONLY or rng.random() < 0.3 else _log_uniform(rng, SIDES)
    if operation in WITH_RIGHT_HAND_SIDE or operation == "pinv":
        # Tall is what they are for.
        m, n = max(m, n), min(m, n)
    dtype = str(rng.choice(list(DTYPES)))
    batch = 0 if rng.random() < 0.5 else _log_uniform(rng, BATCHES)
    rhs = _log_uniform(rng, (1, 32)) if operation in WITH_RIGHT_HAND_SIDE else 1
    deficient = operation in ("pinv", "lstsq") and rng.random() < 1 / 8
    return Case(
        operation,
        (m, n),
        batch,
        getattr(torch, dtype),
        device,
        rhs=rhs,
        log10_cond=None
        if deficient
        else rng.uniform(0.3, _largest_log10_cond(operation, m, dtype)),
        rank=max(1, min(m, n) // 2) if deficient else None,
        seed=int(rng.integers(2**31)),
    )


def _largest_log10_cond(operation: str, longest: int, dtype: str) -> float:
    """0.01/u; or a tenth of what pinv and lstsq begin to truncate at, which is 1/(2u max(m, n)).

    Beyond that the gradient asked for is another one, of a matrix of lower rank.
    """
    truncated_by = 20 * longest if operation in ("pinv", "lstsq") else 1
    return -math.log10(UNIT_ROUNDOFF[dtype] * max(100, truncated_by))


def _log_uniform(rng: np.random.Generator, ends: tuple[int, int]) -> int:
    low, high = np.log(ends)
    return round(math.exp(rng.uniform(low, high)))
