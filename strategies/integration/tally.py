"""Counts and times of equal calls.

Backwards are timed by hooks of the nodes that a call adds to the graph: of some calls, since hooks take as
long as the smallest backwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["Tally"]

_FIRST, _STEP = 16, 7
"""Backwards are timed of this many calls, and then of every so many: odd, since loops are even."""

_OF_LSTSQ = 4
"""Outputs, of which the third is the rank; it is read where that needs no waiting."""


class Tally:
    """Counts and seconds of equal calls, and what times their backwards."""

    __slots__ = (
        "_began",
        "_is_running",
        "backward",
        "backwards",
        "count",
        "forward",
        "ranks",
        "watched",
    )

    def __init__(self, is_running: Callable[[], bool]) -> None:
        self._is_running = is_running
        self._began: list[float] = []
        self.count = self.watched = self.backwards = 0
        self.forward = self.backward = 0.0
        self.ranks: set[int] = set()

    def is_to_watch(self) -> bool:
        """Whether the latest call is one of those whose backwards are timed."""
        return self.count <= _FIRST or not self.count % _STEP

    def watch(
        self, device: torch.device, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> None:
        """Times the nodes of the graph between the outputs and the inputs of a call."""
        self.watched += 1
        if len(outputs) == _OF_LSTSQ and outputs[2].is_cpu and outputs[2].numel():
            self.ranks.update(int(extreme) for extreme in outputs[2].aminmax())
        node, seen = None, {each.grad_fn for each in inputs}
        nodes = [each.grad_fn for each in outputs if each.requires_grad]
        before, after = self._before, self._after
        if device.type == "cuda":
            before, after = (_waiting(hook, device) for hook in (before, after))
        while nodes:
            found = nodes.pop()
            if found is None or found in seen or found.name() == "torch::autograd::AccumulateGrad":
                continue
            node = found
            seen.add(node)
            node.register_prehook(before)
            node.register_hook(after)
            nodes += [following for following, _ in node.next_functions]
        if node is not None:  # the last, next to an input, runs whichever output is used
            node.register_prehook(self._counts)

    def _before(self, _cotangents: Any) -> None:
        self._began.append(time.perf_counter())

    def _after(self, _gradients: Any, _cotangents: Any) -> None:
        seconds = time.perf_counter() - self._began.pop()
        if self._is_running():
            self.backward += seconds

    def _counts(self, _cotangents: Any) -> None:
        self.backwards += self._is_running()


def _waiting(hook: Callable[..., None], device: torch.device) -> Callable[..., None]:
    def waits(*arguments: Any) -> None:
        torch.cuda.synchronize(device)
        hook(*arguments)

    return waits
