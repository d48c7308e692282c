"""Whether a machine is quiet enough for measurements to mean something."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import msgspec
import torch

from strategies.measuring.clock import sampler
from strategies.measuring.machine import Machine

__all__ = ["LOUD", "NOISY", "load", "observed", "unrest"]

NOISY = 1.15
"""From here on measurements take longer until they are clear."""

LOUD = 1.5
"""From here on they say little."""

_PAIRS = 60


def unrest(work: Callable[[], object] | None = None) -> float:
    """By what factor the same work, done twice in a row, differs in time; 1 is a quiet machine.

    That is the 90th percentile of the ratio over its 10th, as a geometric mean for one side.

    Example:
        >>> unrest(lambda: sum(range(100))) >= 1
        True
    """
    if work is None:
        matrix = torch.ones(128, 128)
        work = lambda: matrix @ matrix  # noqa: E731
    sample = sampler(work)
    ratios = sorted(sample() / sample() for _ in range(_PAIRS))
    return math.sqrt(ratios[-1 - _PAIRS // 10] / ratios[_PAIRS // 10])


def load() -> float:
    """The processes that waited for a core during the last minute, over the cores; 0 where unknown."""
    return os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0


def observed(machine: Machine) -> Machine:
    """The machine, with how busy and how noisy it is now; that takes some tens of milliseconds.

    Example:
        >>> observed(Machine("here")).noise >= 1
        True
    """
    return msgspec.structs.replace(machine, load=round(load(), 3), noise=round(unrest(), 3))
