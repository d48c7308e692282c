"""One case by PyTorch, by the best of our strategies and by every peer, all in the same rounds."""

from collections.abc import Sequence

import msgspec
import torch

from benchmarks.peers.process import Peer
from strategies import operations, registry
from strategies.accuracy.measures import PASS_BELOW
from strategies.formulas.amplification import unit_roundoff
from strategies.measuring import Case, Cell, Measurement, Objective, Status, backward_of
from strategies.measuring.clock import Sampler
from strategies.measuring.errors import gradient_error
from strategies.measuring.grid_cases import case_of, parameters
from strategies.measuring.measure import TIMED, measure
from strategies.policy import BASELINE

PEERS = ("jax", "lineax")

_SMALL = 4, 16, 64
"""Sizes of single matrices, of which a call costs more than its arithmetic."""

_HARDER = 3
"""log₁₀ of the condition number at which a strategy that loses digits twice is told apart."""


def small_cases() -> list[Case]:
    """Single small matrices, of every operation that has measured cells."""
    return [Case(name, (n, n)) for name in operations.measured() for n in _SMALL]


def compare(case: Case, peers: Sequence[Peer], budget: float) -> Cell:
    """Native, our best strategy at each objective, and the peers, in rounds of `budget` seconds.

    RuntimeError, if a peer's gradients are not those of PyTorch: it does other work then.
    """
    errors: dict[str, float | None] = {}
    others: dict[str, dict[Objective, Sampler]] = {}
    refused = []
    for peer in peers:
        try:
            errors[peer.name] = _checked_error(case, peer)
            others[peer.name] = {objective: peer.sampler(objective) for objective in TIMED}
        except (NotImplementedError, TimeoutError) as reason:
            refused.append(Measurement(peer.name, Status.NOT_APPLICABLE, note=str(reason)))
    cell = measure(case, [BASELINE, *candidates(case)], budget=budget, others=others)
    shown = {BASELINE, *(fastest(cell, objective) for objective in TIMED), *others}
    timed = (
        msgspec.structs.replace(each, error=errors.get(each.strategy, each.error))
        for each in cell
        if each.strategy in shown
    )
    return Cell(case, (*timed, *refused))


def candidates(case: Case) -> list[str]:
    """Our strategies whose error grows as κ u, κ being the condition number, and not faster."""
    record = operations.get(case.operation)
    shapes, *_ = parameters(record.cells["quick"].conditioned)
    harder = case_of(case.operation, shapes[0], 0, case.dtype_name, "cpu", _HARDER)
    limit = PASS_BELOW * 10**_HARDER * unit_roundoff(case.dtype)
    names = [name for name in registry.distinct(record.stem) if name != BASELINE]
    measured = measure(harder, names, objectives=())
    return [each.strategy for each in measured if each.error is not None and each.error <= limit]


def fastest(cell: Cell, objective: Objective) -> str | None:
    """The fastest of our strategies in a cell, if any was timed."""
    costs = cell.costs(objective)
    ours = [name for name in costs if name not in (BASELINE, *PEERS)]
    return min(ours, key=lambda name: costs[name].seconds, default=None)


def _checked_error(case: Case, peer: Peer) -> float | None:
    """The error of a peer's gradients, after it has warmed up."""
    computed = tuple(torch.from_numpy(gradient.copy()) for gradient in peer.prepare(case))
    tolerance = torch.finfo(case.dtype).eps ** 0.5
    native = backward_of(case, BASELINE)()
    # Across the domain libraries may write what they like.
    part = operations.get(case.operation).domain.part
    ours, theirs = ([part(of_matrix), *others] for of_matrix, *others in (native, computed))
    for expected, gradient in zip(ours, theirs, strict=True):
        if not torch.dist(gradient, expected) <= tolerance * expected.norm():
            raise RuntimeError(f"{peer.name}'s gradients of {case} differ from PyTorch's")
    return gradient_error(case, computed)
