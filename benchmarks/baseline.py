"""Whether a strategy has become slower: the gate behind `pytest benchmarks --benchmark-compare`.

Seconds drift by tens of percent on a shared machine, so they are no baseline. What is kept is every
strategy's time over native's in the same case, both the best of many short blocks taken in turn:
another program's load lengthens some blocks, but can shorten none. A verdict is on a strategy and
operation, by the geometric mean over its cases.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from strategies.measuring import sampler
from strategies.selection import files

PATH = Path(__file__).with_name("baseline.json")
FORMAT = "backward-strategies baseline"
VERSION = 1

SLOWER = 1.5
"""A geometric mean beyond this fails. Runs on a busy machine differ by a tenth or two."""

FEWEST_BLOCKS = 8
"""Of each, whatever they take: among fewer, none may have been left alone."""

Ratios = dict[str, dict[str, float]]
"""Time over native's, by case label and strategy."""


def over_native(
    backward: Callable[[], object], native: Callable[[], object], budget: float
) -> float:
    """The shortest block of one over the shortest block of the other, taken in turn.

    Args:
        backward: the strategy's.
        native: PyTorch's own.
        budget: seconds to go on for.

    Example:
        >>> over_native(lambda: sum(range(5000)), lambda: sum(range(5000)), 0.02) > 0
        True
    """
    mine, theirs = sampler(backward), sampler(native)
    deadline = time.perf_counter() + budget
    pairs = [(mine(), theirs()) for _ in range(FEWEST_BLOCKS)]
    while time.perf_counter() < deadline:
        pairs.append((mine(), theirs()))
    best_mine, best_theirs = map(min, zip(*pairs, strict=True))
    return best_mine / best_theirs


def slowdowns(kept: Ratios, measured: Ratios) -> dict[tuple[str, str], float]:
    """By strategy and operation, the geometric mean of measured over kept ratios.

    Example:
        >>> kept = {"inv 8x8": {"qr_pinv": 1.0}, "inv 9x9": {"qr_pinv": 2.0}}
        >>> slowdowns(kept, {"inv 8x8": {"qr_pinv": 4.0}, "inv 9x9": {"qr_pinv": 2.0}})
        {('qr_pinv', 'inv'): 2.0}
    """
    logarithms: dict[tuple[str, str], list[float]] = defaultdict(list)
    for label, by_strategy in measured.items():
        for strategy, ratio in by_strategy.items():
            if strategy in kept.get(label, {}):
                change = math.log2(ratio / kept[label][strategy])
                logarithms[strategy, label.split()[0]].append(change)
    return {group: 2 ** (sum(each) / len(each)) for group, each in logarithms.items()}


def load() -> Ratios:
    """The committed ratios.

    Raises:
        UnusableFileError: the file is missing, corrupt, foreign or newer.
    """
    ratios: Ratios = files.read_versioned(PATH, FORMAT, VERSION)["time_over_native"]
    return ratios


def save(measured: Ratios, machine: dict[str, str]) -> None:
    """Makes these ratios the baseline.

    Raises:
        UnusableFileError: the file cannot be written.
    """
    rounded = {
        label: {strategy: float(f"{ratio:.3g}") for strategy, ratio in by_strategy.items()}
        for label, by_strategy in measured.items()
    }
    content = {"format": FORMAT, "version": VERSION, "machine": machine}
    files.write_json(PATH, content | {"time_over_native": rounded})
