"""One case by PyTorch, by the best of our strategies and by every peer, compared in turn."""

from __future__ import annotations

import dataclasses
import statistics
import time
import timeit
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import strategies
from benchmarks import grid
from benchmarks.peers.worker import Arrays, Peer
from benchmarks.suite import error_limit, gradient_error
from strategies.accuracy.measures import PASS_BELOW
from strategies.errors import LinAlgError
from strategies.measuring import (
    Case,
    PairedTiming,
    backward_of,
    forward_backward_of,
    paired_samples,
    sampler,
)

OBJECTIVES = {"backward": backward_of, "forward_backward": forward_backward_of}
NATIVE = "native"

GRIDS = {
    "full": {
        "lu_factor": (
            *("256x256", "512x512", "1024x1024", "2048x2048", "1024x1024 float32"),
            *("4x4 batch=100000", "8x8 batch=10000", "16x16 batch=10000", "32x32 batch=1000"),
            *("8192x64", "2048x256"),
        ),
        "pinv": ("4096x32", "8192x64", "256x256"),
        "lstsq": ("4096x32", "8192x64"),
        "solve": ("1024x1024",),
        "inv": ("1024x1024",),
    },
    "quick": {
        "lu_factor": ("256x256", "4x4 batch=10000"),
        "pinv": ("1024x32",),
        "lstsq": ("1024x32",),
        "solve": ("256x256",),
        "inv": ("256x256",),
    },
}

Sampler = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Timed:
    """One library on one case.

    Attributes:
        name: of the strategy or the peer.
        seconds: of a call, by objective.
        over_ours: time over that of our best strategy, paired, by objective: the median between
            the ends of its 95 % interval.
        note: why it was not timed, else empty.
    """

    name: str
    seconds: dict[str, float]
    over_ours: dict[str, tuple[float, float, float]]
    note: str = ""


def cases(grid_name: str) -> list[Case]:
    """The cases of a grid: "quick" or "full"."""
    return [
        _case(operation, *text.split())
        for operation, texts in GRIDS[grid_name].items()
        for text in texts
    ]


def _case(operation: str, shape: str, *words: str) -> Case:
    batch = next((int(word.partition("=")[2]) for word in words if "=" in word), 0)
    dtype = next((word for word in words if "=" not in word), "float64")
    return grid.case_of(operation, shape, batch, dtype, "cpu")


def longest(peers: int, budget: float) -> float:
    """Seconds after which nothing more of a case is begun; most take a fraction of it."""
    timings = (1 + peers) * len(OBJECTIVES)
    return 180 + 2 * budget * timings


def compare(
    case: Case,
    peers: Sequence[Peer],
    budget: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[Timed]:
    """Times native, our best strategy and the peers; ours comes second.

    What is not done when `longest` has passed is left out, with a note.

    Args:
        case: what to compute.
        peers: the other libraries.
        budget: seconds for the pairs of one library and objective.
        clock: reads seconds.

    Raises:
        RuntimeError: a peer's gradients are not those of PyTorch, so it does other work.
    """
    deadline = clock() + longest(len(peers), budget)

    def left() -> float:
        return deadline - clock()

    reference = backward_of(case, NATIVE)()
    best = _fastest(case, reference, left)
    ours = _samplers(case, best, left)
    others, timings = [], []
    for name, peer in {NATIVE: None, **{peer.name: peer for peer in peers}}.items():
        try:
            if peer is None:
                theirs = _samplers(case, NATIVE, left)
            else:
                _check(case, peer.name, peer.prepare(case, left()), reference)
                theirs = {objective: peer.sampler(objective, left) for objective in OBJECTIVES}
            timing = {
                objective: paired_samples(theirs[objective], ours[objective], budget=budget)
                for objective in OBJECTIVES
            }
        except (NotImplementedError, TimeoutError) as reason:
            others.append(Timed(name, {}, {}, str(reason)))
        else:
            others.append(_timed(name, timing))
            timings.append(timing)
    seconds = {
        objective: statistics.median(timing[objective].seconds_g for timing in timings)
        for objective in OBJECTIVES
        if timings
    }
    return [others[0], Timed(best, seconds, {}, "" if seconds else "out of time"), *others[1:]]


def _samplers(case: Case, name: str, left: Callable[[], float]) -> dict[str, Sampler]:
    def limited(sample: Sampler) -> Sampler:
        def sample_in_time() -> float:
            if left() < 0:
                raise TimeoutError("out of time")
            return sample()

        return sample_in_time

    return {
        objective: limited(sampler(build(case, name))) for objective, build in OBJECTIVES.items()
    }


def _check(case: Case, name: str, gradients: Arrays, reference: tuple[Tensor, ...]) -> None:
    computed = tuple(torch.from_numpy(gradient.copy()) for gradient in gradients)
    if not _agrees(case, computed, reference):
        raise RuntimeError(f"{name}'s gradients of {case.label} differ from PyTorch's")


def _timed(name: str, timings: dict[str, PairedTiming]) -> Timed:
    seconds = {objective: timing.seconds_f for objective, timing in timings.items()}
    ratios = {
        objective: (timing.low, timing.ratio, timing.high) for objective, timing in timings.items()
    }
    return Timed(name, seconds, ratios)


def _fastest(case: Case, reference: tuple[Tensor, ...], left: Callable[[], float]) -> str:
    """Our fastest stable strategy whose gradient is PyTorch's to within the errors allowed to both.

    One that takes far longer than another in a single call is out of the running.
    """
    times: dict[str, float] = {}
    for name in strategies.available():
        if name == NATIVE or (times and left() < 0):
            continue
        try:
            backward = backward_of(case, name)
            gradients = backward()
            if not _is_stable(case, name):
                continue
        except (NotImplementedError, LinAlgError):
            continue
        once = timeit.timeit(backward, number=1)
        if not _agrees(case, gradients, reference) or once > 5 * min(times.values(), default=once):
            continue
        timing = paired_samples(sample := sampler(backward), sample, budget=0.5)
        times[name] = timing.seconds_f
    return min(times, key=lambda name: times[name])


def _is_stable(case: Case, name: str) -> bool:
    """Whether the error grows as κ u; if it grows faster, being fast is no merit."""
    shape = (80, 10) if case.operation in ("pinv", "lstsq") else (48, 48)
    harder = Case(case.operation, shape, dtype=case.dtype, log10_cond=3.0)
    unit_roundoff = torch.finfo(case.dtype).eps / 2
    return gradient_error(harder, backward_of(harder, name)) <= PASS_BELOW * 1e3 * unit_roundoff


def _agrees(case: Case, gradients: tuple[Tensor, ...], reference: tuple[Tensor, ...]) -> bool:
    return all(
        gradient.shape == expected.shape
        and bool((gradient - expected).norm() <= 2 * error_limit(case) * expected.norm())
        for gradient, expected in zip(gradients, reference, strict=True)
    )
