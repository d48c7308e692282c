"""One case by PyTorch, by the best of our strategies and by every peer, compared in turn.

There are two objectives, the backward and forward and backward together, and a best for each.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

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
from strategies.measuring.rounds import in_rounds

OBJECTIVES = {"backward": backward_of, "forward_backward": forward_backward_of}
NATIVE = "native"
PEERS = ("jax", "lineax")

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

T = TypeVar("T")
Clock = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Timed:
    """One library, or one of our strategies, on one case.

    Attributes:
        name: of the strategy or the peer.
        seconds: of a call, by objective; of ours, by those at which it is the best.
        over_ours: of another, time over that of our best strategy at an objective, paired: the
            median between the ends of its 95 % interval.
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
    case: Case, peers: Sequence[Peer], budget: float, clock: Clock = time.monotonic
) -> list[Timed]:
    """Times native, our best strategy at each objective, and the peers, in this order.

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
    try:
        best = _fastest(case, reference, left)
        ours = _samplers(case, best, left)
    except TimeoutError as reason:
        names = (NATIVE, *(peer.name for peer in peers))
        return [Timed(name, {}, {}, str(reason)) for name in names]
    others, timings = [], []
    for name, peer in {NATIVE: None, **{peer.name: peer for peer in peers}}.items():
        try:
            if peer is None:
                theirs = _samplers(case, dict.fromkeys(OBJECTIVES, NATIVE), left)
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
    return [others[0], *_our_own(best, timings), *others[1:]]


def _our_own(best: Mapping[str, str], timings: Sequence[Mapping[str, PairedTiming]]) -> list[Timed]:
    """Our best strategies with what they took beside the others; none if nothing was timed."""
    seconds: dict[str, dict[str, float]] = {}
    for objective, name in best.items():
        if timings:
            took = statistics.median(timing[objective].seconds_g for timing in timings)
            seconds.setdefault(name, {})[objective] = took
    return [Timed(name, took, {}) for name, took in seconds.items()]


def _samplers(case: Case, names: Mapping[str, str], left: Clock) -> dict[str, Clock]:
    """By objective, what times a block of the strategy that is named for it."""
    return {
        objective: _limited(sampler(OBJECTIVES[objective](case, name)), left)
        for objective, name in names.items()
    }


def _limited(call: Callable[[], T], left: Clock) -> Callable[[], T]:
    """A call that raises TimeoutError when no seconds are left."""

    def in_time() -> T:
        if left() < 0:
            raise TimeoutError("out of time")
        return call()

    return in_time


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


def _fastest(case: Case, reference: tuple[Tensor, ...], left: Clock) -> dict[str, str]:
    """By objective, the fastest of our strategies that are right.

    Twice as slow as another in its first calls, one is out of the running: at the largest cases a
    call takes seconds.

    Raises:
        TimeoutError: no seconds are left.
    """
    names = _candidates(case, reference, left)
    fastest = {}
    for objective, build in OBJECTIVES.items():
        calls = {name: _limited(build(case, name), left) for name in names}
        rounds = in_rounds(calls, hopeless=2, min_rounds=4, budget=0.5).seconds
        fastest[objective] = min(rounds, key=lambda name: statistics.median(rounds[name]))
    return fastest


def _candidates(case: Case, reference: tuple[Tensor, ...], left: Clock) -> list[str]:
    """Our stable strategies whose gradient is PyTorch's to within the errors allowed to both.

    One whose backward alone takes far longer than another's forward and backward is the best at
    neither, and left out.
    """
    alone: dict[str, float] = {}
    together: dict[str, float] = {}
    names = [name for name in strategies.available() if name != NATIVE]
    # All small cases come first: they load and compile what the large one needs.
    for name in [name for name in names if _is_stable(case, name)]:
        begun = left()
        try:
            backward = _limited(backward_of(case, name), left)
            built = left()
            gradients = backward()
        except (NotImplementedError, LinAlgError):
            continue
        if _agrees(case, gradients, reference):
            ended = left()
            alone[name], together[name] = built - ended, begun - ended
    return [name for name, took in alone.items() if took <= 4 * min(together.values())]


def _is_stable(case: Case, name: str) -> bool:
    """Whether the error grows as κ u; a strategy that refuses is not stable either."""
    shape = (80, 10) if case.operation in ("pinv", "lstsq") else (48, 48)
    harder = Case(case.operation, shape, dtype=case.dtype, log10_cond=3.0)
    limit = PASS_BELOW * 1e3 * torch.finfo(case.dtype).eps / 2
    try:
        return gradient_error(harder, backward_of(harder, name)) <= limit
    except (NotImplementedError, LinAlgError):
        return False


def _agrees(case: Case, gradients: tuple[Tensor, ...], reference: tuple[Tensor, ...]) -> bool:
    return all(
        gradient.shape == expected.shape
        and bool((gradient - expected).norm() <= 2 * error_limit(case) * expected.norm())
        for gradient, expected in zip(gradients, reference, strict=True)
    )
