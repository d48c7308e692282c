"""Measuring: a case, its work, the one clock, memory and operation counts."""

from strategies.measuring.case import Case
from strategies.measuring.clock import (
    PairedTiming,
    paired,
    paired_samples,
    sampler,
    synchronized_timer,
)
from strategies.measuring.memory import peak_bytes
from strategies.measuring.work import Work, work_of
from strategies.measuring.workload import backward_of, forward, forward_backward_of

__all__ = [
    "Case",
    "PairedTiming",
    "Work",
    "backward_of",
    "forward",
    "forward_backward_of",
    "paired",
    "paired_samples",
    "peak_bytes",
    "sampler",
    "synchronized_timer",
    "work_of",
]
