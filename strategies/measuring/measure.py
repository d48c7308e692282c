"""One case measured with several strategies: times by interleaved rounds, errors, memory."""

import operator
from collections.abc import Callable, Mapping, Sequence

import msgspec
import torch

from strategies.errors import LinAlgError
from strategies.measuring.case import Case
from strategies.measuring.clock import Sampler, sampler
from strategies.measuring.errors import gradient_error
from strategies.measuring.measurement import Cell, Measurement, Objective, Timing, without_result
from strategies.measuring.memory import peak_bytes
from strategies.measuring.noise import BUSY, contention
from strategies.measuring.timing import interleaved
from strategies.measuring.workload import Backward, backward_of, forward_backward_of, is_affordable

TIMED = (Objective.BACKWARD, Objective.FORWARD_BACKWARD)
"""The objectives that take a clock."""


def measure(
    case: Case,
    names: Sequence[str],
    *,
    objectives: Sequence[Objective] = TIMED,
    budget: float = 1.0,
    others: Mapping[str, Mapping[Objective, Sampler]] = {},
    begins: Callable[[str], None] = lambda _: None,
) -> Cell:
    """Runs strategies on one case: errors and memory of each, then times, interleaved.

    Of `names` the first is what others are compared with; without `objectives` nothing is timed. `others`,
    by name and objective, are timed in the same rounds, and come last. What was timed beside other work is
    timed once more, and the quieter time is kept. The rounds of an objective may take `budget` seconds,
    beyond the fewest. `begins` is called with the name of every strategy and then of every objective,
    before its turn.

    Raises:
        ValueError: the device of the case is not there.

    Example:
        >>> cell = measure(Case("inv", (3, 3)), ["native", "qr_pinv"], budget=0)
        >>> [each.strategy for each in cell], cell.get("qr_pinv").error < 1e-13
        (['native', 'qr_pinv'], True)
    """
    runnable, found = prepare(case, names, begins)
    for name, backward in runnable.items():
        error = gradient_error(case, backward())
        found[name] = Measurement(name, error=error, peak_bytes=peak_bytes(backward, case.device))
    found |= {name: Measurement(name) for name in others}
    beside = []
    for objective in objectives:
        begins(objective)
        calls = runnable
        if objective is Objective.FORWARD_BACKWARD:
            calls = {name: forward_backward_of(case, name) for name in runnable}
        samplers = {name: sampler(call) for name, call in calls.items()}
        samplers |= {name: samples[objective] for name, samples in others.items()}
        timings, contending = _timed(samplers, budget)
        beside.append(contending)
        for name, timing in timings.items():
            found[name] = msgspec.structs.replace(found[name], **{objective.value: timing})
    return Cell(case, tuple(found.values()), max(beside, default=None))


def _timed(samplers: Mapping[str, Sampler], budget: float) -> tuple[dict[str, Timing], float]:
    """Times and their contention, of the quieter of two attempts where the first is not quiet."""

    def attempt() -> tuple[dict[str, Timing], float]:
        before = contention()
        return interleaved(samplers, budget=budget), max(before, contention())

    first = attempt()
    return first if first[1] < BUSY else min(first, attempt(), key=operator.itemgetter(1))


def prepare(
    case: Case,
    names: Sequence[str],
    begins: Callable[[str], None] = lambda _: None,
    made: Callable[[Case, str], Backward] = backward_of,
) -> tuple[dict[str, Backward], dict[str, Measurement]]:
    """What is made of the strategies that can, each run once, and of all how the attempt ended."""
    device = torch.device(case.device)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"there is no device {case.device} here")
    runnable: dict[str, Backward] = {}
    found: dict[str, Measurement] = {}
    for name in names:
        begins(name)
        try:
            if not is_affordable(case, name):
                raise NotImplementedError("takes more memory than is there")
            backward = made(case, name)
            backward()
        except (RuntimeError, MemoryError) as error:
            refuses = isinstance(error, NotImplementedError | LinAlgError)
            found[name] = without_result(name, error, refuses=refuses)
        else:
            runnable[name], found[name] = backward, Measurement(name)
    return runnable, found
