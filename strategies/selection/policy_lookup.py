"""Looking a strategy up in a policy: plain Python, no tables, no numerics library.

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

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
