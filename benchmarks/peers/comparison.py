"""One case by PyTorch, by the best of our strategies and by every peer, compared in turn."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import strategies
from benchmarks import grid
from benchmarks.peers.worker import Peer
from benchmarks.suite import error_limit
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
        over_ours: time over that of our best strategy, paired, by objective.
        note: why it was not timed, else empty.
    """

    name: str
    seconds: dict[str, float]
    over_ours: dict[str, PairedTiming]
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


def compare(case: Case, peers: Sequence[Peer], budget: float) -> list[Timed]:
    """Times native, our best strategy and the peers; ours comes second.

    Args:
        case: what to compute.
        peers: the other libraries.
        budget: seconds for the pairs of one library and objective.

    Raises:
        RuntimeError: a peer's gradients are not those of PyTorch, so it does other work.
    """
    reference = backward_of(case, NATIVE)()
    best = _fastest(case, reference)
    ours = {objective: sampler(build(case, best)) for objective, build in OBJECTIVES.items()}
    native = {objective: sampler(build(case, NATIVE)) for objective, build in OBJECTIVES.items()}
    others = [_compared(NATIVE, native, ours, budget)]
    for peer in peers:
        try:
            gradients = peer.prepare(case)
        except NotImplementedError as reason:
            others.append(Timed(peer.name, {}, {}, str(reason)))
            continue
        computed = tuple(torch.from_numpy(gradient.copy()) for gradient in gradients)
        if not _agrees(case, computed, reference):
            raise RuntimeError(f"{peer.name}'s gradients of {case.label} differ from PyTorch's")
        theirs = {objective: peer.sampler(objective) for objective in OBJECTIVES}
        others.append(_compared(peer.name, theirs, ours, budget))
    seconds = {
        objective: statistics.median(
            other.over_ours[objective].seconds_g for other in others if other.over_ours
        )
        for objective in OBJECTIVES
    }
    return [others[0], Timed(best, seconds, {}), *others[1:]]


def _compared(
    name: str, theirs: dict[str, Sampler], ours: dict[str, Sampler], budget: float
) -> Timed:
    timings = {
        objective: paired_samples(theirs[objective], ours[objective], budget=budget)
        for objective in OBJECTIVES
    }
    seconds = {objective: timing.seconds_f for objective, timing in timings.items()}
    return Timed(name, seconds, timings)


def _fastest(case: Case, reference: tuple[Tensor, ...]) -> str:
    """Our fastest strategy whose gradient is PyTorch's to within the errors allowed to both."""
    times: dict[str, float] = {}
    for name in strategies.available():
        if name == NATIVE:
            continue
        try:
            backward = backward_of(case, name)
            gradients = backward()
        except (NotImplementedError, LinAlgError):
            continue
        if _agrees(case, gradients, reference):
            timing = paired_samples(sample := sampler(backward), sample, budget=0.5)
            times[name] = timing.seconds_f
    return min(times, key=lambda name: times[name])


def _agrees(case: Case, gradients: tuple[Tensor, ...], reference: tuple[Tensor, ...]) -> bool:
    return all(
        gradient.shape == expected.shape
        and bool((gradient - expected).norm() <= 2 * error_limit(case) * expected.norm())
        for gradient, expected in zip(gradients, reference, strict=True)
    )
