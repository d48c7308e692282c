"""Measuring: a case, how strategies are timed on it, their errors, memory and work."""

from strategies.measuring.case import DTYPES, Case
from strategies.measuring.machine import Machine, describe
from strategies.measuring.measure import TIMED, measure
from strategies.measuring.measurement import Cell, Measurement, Objective, Stability, Status, Timing
from strategies.measuring.memory import peak_bytes
from strategies.measuring.noise import with_load_and_noise
from strategies.measuring.store import Run, Writer
from strategies.measuring.work import work_of
from strategies.measuring.workload import backward_of, forward, forward_backward_of

__all__ = [
    "DTYPES",
    "TIMED",
    "Case",
    "Cell",
    "Machine",
    "Measurement",
    "Objective",
    "Run",
    "Stability",
    "Status",
    "Timing",
    "Writer",
    "backward_of",
    "describe",
    "forward",
    "forward_backward_of",
    "measure",
    "peak_bytes",
    "with_load_and_noise",
    "work_of",
]
