"""Tallies as the calls of a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import torch

from strategies import operations
from strategies.autograd.choice import policy_key
from strategies.integration.recorded_functions import names
from strategies.integration.tally import Tally
from strategies.integration.workload import Call

__all__ = ["Key", "call_of"]

Key = tuple[str, tuple[torch.Size, ...], torch.dtype, torch.device, str, int]
"""Function, shapes, dtype, device, and where the call is: file and line."""

_MADE_OF = {"inverse": "inv", "logdet": "slogdet", "pinverse": "pinv"}
"""The operation whose cases stand for a function that is none itself."""

_MATRIX_LAST = {"cholesky_solve"}
"""Operations of matrix and right-hand sides that torch gives these first."""


def call_of(key: Key, tally: Tally) -> Call:
    """What a file holds of equal calls; the backwards of those that were not timed are like the others."""
    function, sizes, dtype, device, file, line = key
    shapes = tuple(map(tuple, sizes))
    rank = _deficient(tally.ranks, shapes[0])
    scale = tally.count / tally.watched if tally.watched else 0.0
    return Call(
        function=function,
        at=f"{_relative(file)}:{line}" if file else "",
        shapes=shapes,
        dtype=str(dtype).removeprefix("torch."),
        device=str(device),
        rank=rank,
        case=_case(function, shapes, dtype, str(device), rank),
        count=tally.count,
        forward=tally.forward,
        backward=tally.backward * scale,
        backwards=round(tally.backwards * scale),
    )


def _deficient(ranks: set[int], shape: tuple[int, ...]) -> int | None:
    """The rank that all matrices have had, if that is not full."""
    if len(ranks) != 1:
        return None
    (rank,) = ranks
    return rank if rank < min(shape[-2:]) else None


def _relative(path: str) -> str:
    """To the current folder, where the file is in it."""
    with contextlib.suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _case(
    function: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: torch.dtype,
    device: str,
    rank: int | None,
) -> str:
    """What to measure for a call; empty where a case has no words for it."""
    from strategies.measuring.case import Case

    name = names()[function]
    name = _MADE_OF.get(name, name)
    if name in _MATRIX_LAST:
        shapes = shapes[::-1]
    if name not in operations.names() or len(shapes[0]) < 2:
        return ""
    likes = (torch.empty(shape, dtype=dtype, device="meta") for shape in shapes)
    operation, m, n, rhs, batch, _, _ = policy_key(name, *likes)
    with contextlib.suppress(ValueError):
        return str(Case(operation, (m, n), batch, dtype, device, rhs, rank=rank))
    return ""
