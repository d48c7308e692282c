"""What the process of a cell does: it measures, and says over a pipe what it is at and how it went."""

import ctypes
import resource
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

import torch

from strategies import operations, registry
from strategies.errors import message_of
from strategies.measuring import Case, Objective, Run, describe, measure, with_load_and_noise

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of <sys/prctl.h>."""


def measure_case(
    pipe: Connection, case: Case, objectives: Sequence[Objective], budget: float, threads: int
) -> None:
    """Measures a case with all strategies, paired; sends the name of what has its turn, then a run.

    Of an error that no strategy may raise it sends the message.
    """
    _obey_the_worker(threads)
    try:
        names = registry.distinct(operations.get(case.operation).stem)
        machine = with_load_and_noise(describe())
        cell = measure(case, names, objectives=objectives, budget=budget, begins=pipe.send)
        pipe.send(Run("grid", machine, {"strategies": [*names]}, (cell,)))
    except BaseException as error:
        pipe.send(RuntimeError(message_of(error)))  # which can be sent, whatever the error is
        raise


def report_machine(pipe: Connection, threads: int) -> None:
    """Says what machine this is; in a process of its own, since asking for a GPU starts CUDA."""
    _obey_the_worker(threads)
    pipe.send(describe())


def _obey_the_worker(threads: int) -> None:
    """It is the worker that signals are for; and without it nobody hears a result."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(each, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    # A crash is expected, and its dump may be huge.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(threads)
