"""Which strategy `strategy="auto"` stands for: looked up in a policy, built from measurements.

The policy is the shipped one, or the file or the strategy that `use` or the environment variable
`BACKWARD_STRATEGIES_USE` names. Files are read at import or when `use` is entered, never in a call.

A policy file is JSON:

    {"format": "backward-strategies policy", "version": 2,
     "criteria": {"objective": "backward", "accuracy": null, "memory_bytes": null},
     "provenance": [{"machine": ..., "cpu": ..., "torch": ..., "commit": ..., ...}],
     "operations": {
       "pinv": {
         "default": {
           "full_rank": {"strategy": "triangular_solve", "then": ["qr_pinv", ...], ...},
           "any_rank": {"strategy": "qr_pinv", "then": [...], "worst_regret": 3.1, ...}},
         "unstable": {"float64": {"explicit_inverse": "at κ = 1e5 its error is ..."}},
         "cells": {
           "cpu": {
             "float64": {
               "full_rank": [{"m": 4096, "n": 32, "rhs": 1, "batch": 0, "rank": null,
                              "use": "triangular_solve", "ties": ["qr_pinv"],
                              "over_native": 188.0,
                              "times": {"triangular_solve": 1.0, "qr_pinv": 1.04,
                                        "native": 188.0}}, ...],
               "rank_deficient": [...]}}}}}}

`times` are of every eligible strategy, over that of the fastest. A measured case is answered by its
cell. Any other is answered by the nearest cells (see `ranking`) of the same operation, kind of
device, dtype and kind of rank. A dtype that was not measured borrows the cells of the next of
`DTYPES_IN_ORDER`; a kind of device that was not measured gets the operation's single default; an
operation that was not measured, the baseline. Where no matrix of deficient rank was measured, there
is no `any_rank` default, and the simplest strategy that takes any rank is used for those. Of what
a policy ranks, the first that is installed is used.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import heapq
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strategies import registry
from strategies.interface import Strategy

__all__ = [
    "BASELINE",
    "BY_BACKWARD",
    "FORMAT",
    "VERSION",
    "Cell",
    "Policy",
    "candidates",
    "position",
    "ranking",
    "use",
]

FORMAT = "backward-strategies policy"
VERSION = 2

BASELINE = "native"

_SHIPPED = Path(__file__).with_name("policy.json")

BY_BACKWARD = Path(__file__).with_name("policy_by_backward.json")
"""A policy for `use` where one forward is followed by many backwards, as in a Jacobian.

It goes by the time of the backward alone. What is used otherwise goes by both together.
"""

Rank = Literal["full_rank", "rank_deficient"]

DTYPES_IN_ORDER = {
    "float32": ("float32", "float64", "complex64", "complex128"),
    "float64": ("float64", "float32", "complex128", "complex64"),
    "complex64": ("complex64", "complex128", "float32", "float64"),
    "complex128": ("complex128", "complex64", "float64", "float32"),
}
"""Where each dtype looks for cells: the same field first, then the same precision."""

_REGIMES = {"full_rank": "full_rank", "rank_deficient": "any_rank"}

NEIGHBOURS = 4
"""Cells that answer for a case between them."""

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


@dataclass(frozen=True)
class Cell:
    """A measured case.

    Attributes:
        position: where it lies.
        names: its eligible strategies, the one to use first, then from fast to slow.
        costs: of each of them, the logarithm of its time over the fastest one's.
    """

    position: Point
    names: tuple[str, ...]
    costs: Mapping[str, float]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Cell:
        """The cell that an entry of a policy file describes."""
        use, times = entry["use"], entry["times"]
        others = sorted((name for name in times if name != use), key=times.__getitem__)
        where = position(entry["m"], entry["n"], entry["rhs"], entry["batch"])
        return cls(where, (use, *others), {name: math.log(times[name]) for name in times})


def ranking(cells: Sequence[Cell], asked: Point) -> tuple[str, ...]:
    """The strategies for a case, the best first, by what the nearest cells say of them.

    That is the mean over the `NEIGHBOURS` nearest cells of the logarithm of the time over the
    fastest one's, weighted by 1 / distance² (Shepard, Proc. 23rd ACM National Conference, 1968).
    Strategies that are not eligible in all of them come last. A case that was measured is answered
    by its cell alone.

    Args:
        cells: at least one.
        asked: the position of the case.

    Example:
        >>> small = Cell(position(4, 4), ("native", "qr_pinv"), {"native": 0.0, "qr_pinv": 1.0})
        >>> large = Cell(position(99, 99), ("qr_pinv", "native"), {"native": 3.0, "qr_pinv": 0.0})
        >>> ranking([small, large], position(9, 9)), ranking([small, large], position(30, 30))
        (('native', 'qr_pinv'), ('qr_pinv', 'native'))
    """
    found = [(math.dist(cell.position, asked), cell) for cell in cells]
    near = heapq.nsmallest(NEIGHBOURS, found, key=lambda pair: pair[0])
    distance, nearest = near[0]
    if distance == 0:
        return nearest.names
    costs = {
        name: sum(cell.costs[name] / distance**2 for distance, cell in near)
        for name in nearest.names
        if all(name in cell.costs for _, cell in near)
    }
    best = sorted(costs, key=costs.__getitem__)
    return (*best, *(name for name in nearest.names if name not in costs))


class Policy:
    """The content of a policy file, prepared for being asked.

    Raises:
        KeyError, TypeError: the content is not as the format says.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._cells: dict[tuple[str, str, str, str], list[Cell]] = {}
        self._defaults: dict[tuple[str, str], tuple[str, ...]] = {}
        self.candidates = functools.lru_cache(maxsize=4096)(self._candidates)
        for operation, entry in content["operations"].items():
            for regime, default in entry["default"].items():
                self._defaults[operation, regime] = (default["strategy"], *default["then"])
            for device, by_dtype in entry["cells"].items():
                for dtype, by_rank in by_dtype.items():
                    for rank, cells in by_rank.items():
                        key = operation, device, dtype, rank
                        self._cells[key] = [Cell.of(cell) for cell in cells]

    def ranking(
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
    ) -> tuple[str, ...]:
        """The names of the strategies for a case, the best first, whether installed or not.

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
                return ranking(cells, position(m, n, rhs, batch))
        return self._defaults.get((operation, _REGIMES[rank]), ())

    def _candidates(
        self, operation: str, m: int, n: int, rhs: int, batch: int, dtype: str, device: str
    ) -> tuple[Strategy, ...]:
        def installed(rank: Rank) -> Iterator[Strategy]:
            names = self.ranking(
                operation, m, n, rhs=rhs, batch=batch, dtype=dtype, device=device, rank=rank
            )
            return (registry.get(name) for name in names if name in registry.available())

        first = next(installed("full_rank"), None) or registry.get(BASELINE)
        if operation not in ("pinv", "lstsq") or not first.requires_full_rank:
            return (first,)
        any_rank = (each for each in installed("rank_deficient") if not each.requires_full_rank)
        return first, next(any_rank, None) or _any_rank()


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


_override: contextvars.ContextVar[Policy | Strategy | None] = contextvars.ContextVar(
    "backward_strategies_override", default=None
)
_DEFAULT = _resolve(os.environ.get("BACKWARD_STRATEGIES_USE") or _SHIPPED)
