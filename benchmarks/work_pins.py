"""The work that every built-in strategy does per backward, pinned: `python -m benchmarks.work_pins`.

Flops, torch calls and peak bytes do not depend on how busy the machine is, so a regression in work
shows where one in time would drown in noise. They do depend on PyTorch, whose release is pinned too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks.grid import case_of
from strategies import registry
from strategies.errors import LinAlgError
from strategies.measuring import Case, backward_of, peak_bytes, work_of
from strategies.selection import files

PINS = Path(__file__).with_name("work_pins.json")
FORMAT = "backward-strategies work pins"
VERSION = 1
UPDATE = "python -m benchmarks.work_pins --update"

PEAK_TOLERANCE = 1.02
"""LAPACK libraries ask for workspaces of different sizes, and torch allocates them as tensors."""

_SHAPES = {
    "lu_factor": ("96x96", "256x16", "16x256"),
    "pinv": ("96x96", "256x16", "16x256", "64x16 rank=5"),
    "lstsq": ("96x96", "256x16 k=2", "16x256", "64x16 rank=5"),
    "solve": ("96x96 k=2",),
    "inv": ("96x96",),
    "det": ("96x96",),
    "slogdet": ("96x96",),
}
_SMALL_BATCH = ("8x8", 64)

Counts = dict[str, int]
"""flops, calls and peak_bytes; empty for a case that the strategy refuses."""


def release() -> str:
    """The release of PyTorch that counts are valid for."""
    return ".".join(torch.__version__.split(".")[:2])


def cases(operation: str) -> list[Case]:
    """The pinned cases of one operation."""
    sizes = [(shape, 0) for shape in _SHAPES[operation]]
    return [
        case_of(operation, shape, batch, "float64", "cpu")
        for shape, batch in [*sizes, _SMALL_BATCH]
    ]


def count(case: Case, strategy: str) -> Counts:
    """The work of one backward, or nothing where the strategy refuses the case."""
    try:
        backward = backward_of(case, strategy)
    except (NotImplementedError, LinAlgError):
        return {}
    backward()
    work = work_of(backward)
    return {"flops": work.flops, "calls": work.calls, "peak_bytes": peak_bytes(backward)}


def growth(pinned: Counts, counted: Counts) -> list[str]:
    """What is more than pinned, in words."""
    if pinned and not counted:
        return ["the case is refused, and was not"]
    return [
        f"{quantity} grew from {old:,} to {counted[quantity]:,} ({counted[quantity] / max(old, 1):.2f}×)"
        for quantity, old in pinned.items()
        if counted[quantity] > old * (PEAK_TOLERANCE if quantity == "peak_bytes" else 1)
    ]


def pins() -> tuple[str, dict[str, dict[str, Counts]]]:
    """The release that was pinned, and the counts by case and strategy.

    Raises:
        UnusableFileError: the file is missing, corrupt, foreign or newer.
    """
    content = files.read_versioned(PINS, FORMAT, VERSION)
    return content["torch"], content["work"]


def _count_everything() -> dict[str, dict[str, Counts]]:
    return {
        case.label: {name: count(case, name) for name in registry.built_in()}
        for operation in _SHAPES
        for case in cases(operation)
    }


def main(
    update: Annotated[bool, typer.Option("--update", help="Pin what is counted now.")] = False,
) -> None:
    """Count the work of every built-in strategy, and show or pin what changed."""
    counted = _count_everything()
    pinned: dict[str, Any] = pins()[1] if PINS.exists() else {}
    for label, by_strategy in counted.items():
        for name, now in by_strategy.items():
            before = pinned.get(label, {}).get(name)
            if before != now:
                print(f"{label}, {name}: {before} -> {now}")
    if update:
        content = {"format": FORMAT, "version": VERSION, "torch": release(), "work": counted}
        files.write_json(PINS, content)


if __name__ == "__main__":
    typer.run(main)
