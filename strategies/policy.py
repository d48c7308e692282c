"""Which strategy `strategy="auto"` stands for: looked up in a policy, built from measurements.

The policy is the shipped one, or the file or the strategy that `use` or the environment variable
`BACKWARD_STRATEGIES_USE` names. Files are read at import or when `use` is entered, never in a call.

A policy file is JSON:

    {"format": "backward-strategies policy", "version": 1,
     "criteria": {"objective": "backward", "accuracy": null, "memory_bytes": null},
     "provenance": [{"machine": ..., "cpu": ..., "torch": ..., "commit": ..., ...}],
     "operations": {
       "pinv": {
         "default": {
           "full_rank": {"strategy": "triangular_solve", "worst_regret": 1.4, ...},
           "any_rank": {"strategy": "qr_pinv", "worst_regret": 3.1, ...}},
         "unstable": {"float64": {"explicit_inverse": "at κ = 1e5 its error is ..."}},
         "cells": {
           "cpu": {
             "float64": {
               "full_rank": [{"m": 4096, "n": 32, "rhs": 1, "batch": 0, "rank": null,
                              "use": "triangular_solve", "ties": ["qr_pinv"],
                              "over_native": 188.0}, ...],
               "rank_deficient": [...]}}}}}}

A case is answered by the measured cell nearest in log₂ of m, n, right-hand sides and batch, among
those of the same operation, kind of device, dtype and kind of rank. A dtype that was not measured
borrows the cells of the next of `DTYPES_IN_ORDER`; a kind of device that was not measured gets the
operation's single default; an operation that was not measured, the baseline. Where no matrix of
deficient rank was measured, there is no `any_rank` default, and the baseline is used for those.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from strategies import registry
from strategies.interface import Strategy

__all__ = ["BASELINE", "FORMAT", "VERSION", "Policy", "candidates", "nearest", "position", "use"]

FORMAT = "backward-strategies policy"
VERSION = 1

BASELINE = "native"

Rank = Literal["full_rank", "rank_deficient"]

DTYPES_IN_ORDER = {
    "float32": ("float32", "float64", "complex64", "complex128"),
    "float64": ("float64", "float32", "complex128", "complex64"),
    "complex64": ("complex64", "complex128", "float32", "float64"),
    "complex128": ("complex128", "complex64", "float64", "float32"),
}
"""Where each dtype looks for cells: the same field first, then the same precision."""

Point = tuple[float, float, float, float]


def position(m: int, n: int, rhs: int = 1, batch: int = 0) -> Point:
    """Where a case lies: log₂ of its sizes; nothing and one of something are the same place.

    Example:
        >>> position(4096, 32)
        (12.0, 5.0, 0.0, 0.0)
    """
    return (
        math.log2(max(m, 1)),
        math.log2(max(n, 1)),
        math.log2(max(rhs, 1)),
        math.log2(max(batch, 1)),
    )


def nearest(cells: Sequence[tuple[Point, str]], asked: Point) -> str:
    """What the nearest cell uses; the earliest of equally near ones.

    Args:
        cells: positions, and the strategy to use there; at least one.
        asked: the position of the case.

    Example:
        >>> nearest([(position(4, 4), "native"), (position(512, 512), "qr_pinv")], position(99, 99))
        'qr_pinv'
    """
    return min(cells, key=lambda cell: math.dist(cell[0], asked))[1]


class Policy:
    """The content of a policy file, prepared for being asked.

    Raises:
        KeyError, TypeError: the content is not as the format says.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._cells: dict[tuple[str, str, str, str], list[tuple[Point, str]]] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        self.candidates = functools.lru_cache(maxsize=4096)(self._candidates)
        for operation, entry in content["operations"].items():
            for regime, default in entry["default"].items():
                self._defaults[operation, regime] = default["strategy"]
            for device, by_dtype in entry["cells"].items():
                for dtype, by_rank in by_dtype.items():
                    for rank, cells in by_rank.items():
                        self._cells[operation, device, dtype, rank] = [
                            (position(c["m"], c["n"], c["rhs"], c["batch"]), c["use"])
                            for c in cells
                        ]

    def pick(
        self,
        operation: str,
        m: int,
        n: int,
        *,
        rhs: int = 1,
        batch: int = 0,
        dtype: str = "float64",
        device: str = "cpu",
        rank: Rank = "full_rank",
    ) -> str:
        """The name of the strategy to use for a case.

        Args:
            operation: a name of `torch.linalg`.
            m: rows of each matrix.
            n: its columns.
            rhs: columns of B.
            batch: number of matrices; 0 is one matrix.
            dtype: "float64".
            device: "cpu" or "cuda", with or without an index.
            rank: whether the matrices are known to be rank-deficient.
        """
        kind = device.partition(":")[0]
        for candidate in DTYPES_IN_ORDER.get(dtype, ()):
            cells = self._cells.get((operation, kind, candidate, rank))
            if cells:
                return nearest(cells, position(m, n, rhs, batch))
        regime = "full_rank" if rank == "full_rank" else "any_rank"
        return self._defaults.get((operation, regime), BASELINE)

    def _candidates(
        self, operation: str, m: int, n: int, rhs: int, batch: int, dtype: str, device: str
    ) -> tuple[Strategy, ...]:
        name = self.pick(operation, m, n, rhs=rhs, batch=batch, dtype=dtype, device=device)
        first = _installed(name)
        if operation not in ("pinv", "lstsq") or not first.requires_full_rank:
            return (first,)
        fallback = self._defaults.get((operation, "any_rank"))
        return first, _any_rank() if fallback is None else _installed(fallback)


def candidates(
    operation: str, m: int, n: int, *, rhs: int, batch: int, dtype: str, device: str
) -> tuple[Strategy, ...]:
    """The strategies that "auto" tries in turn: a later one where an earlier one refuses the rank.

    Example:
        >>> sizes = dict(rhs=1, batch=0, dtype="float64", device="cpu")
        >>> with use("explicit_inverse"):
        ...     candidates("inv", 64, 64, **sizes)
        (<strategy explicit_inverse>,)
    """
    chosen = _override.get() or _DEFAULT
    if isinstance(chosen, Strategy):
        return (chosen,)
    return chosen.candidates(operation, m, n, rhs, batch, dtype, device)


@contextlib.contextmanager
def use(choice: str | Path | Strategy) -> Iterator[None]:
    """Let "auto" stand for a strategy, or follow a policy file, within a `with` block.

    It holds for the current thread or task, and for the backward of what was computed inside.

    Args:
        choice: a strategy, its name, or the path of a file that `backward-strategies policy build`
            wrote (ending in .json).

    Raises:
        StrategyNotFoundError: no strategy has that name.
        OSError, ValueError: the file cannot be read, or is no policy of this version.

    Example:
        >>> import torch, strategies
        >>> with strategies.use("qr_pinv"):
        ...     strategies.linalg.pinv(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    token = _override.set(_resolve(choice))
    try:
        yield
    finally:
        _override.reset(token)


def _resolve(choice: str | Path | Strategy) -> Policy | Strategy:
    if isinstance(choice, Strategy):
        return choice
    if isinstance(choice, Path) or choice.endswith(".json"):
        return _read(Path(choice))
    return registry.get(choice)


def _read(path: Path) -> Policy:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError(f"{path} is not a {FORMAT} of version {VERSION}")
        return Policy(content)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a readable policy: {error!r}") from error


def _any_rank() -> Strategy:
    """The simplest strategy that takes any rank on every device, which PyTorch's lstsq does not."""
    kinds = (registry.get(name) for name in registry.available())
    return next(k for k in kinds if not (k.requires_full_rank or k.forward_is_differentiable))


def _installed(name: str) -> Strategy:
    """The strategy; the baseline where a policy names a plug-in that is not installed here."""
    return registry.get(name if name in registry.available() else BASELINE)


_override: contextvars.ContextVar[Policy | Strategy | None] = contextvars.ContextVar(
    "backward_strategies_override", default=None
)
_DEFAULT = _resolve(
    os.environ.get("BACKWARD_STRATEGIES_USE") or Path(__file__).with_name("policy.json")
)
