"""Measuring: a case, how strategies are timed on it, their errors, memory and work."""

from strategies.measuring.case import Case
from strategies.measuring.measure import measure
from strategies.measuring.memory import peak_bytes
from strategies.measuring.work import work_of
from strategies.measuring.workload import backward_of, forward, forward_backward_of

__all__ = [
    "Case",
    "backward_of",
    "forward",
    "forward_backward_of",
    "measure",
    "peak_bytes",
    "work_of",
]
