"""Counts and times of equal calls, and what a file holds of them.

Backwards are timed by hooks of the nodes that a call adds to the graph: of some calls, since hooks take as
long as the smallest backwards.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from strategies import operations
from strategies.autograd.choice import policy_key
from strategies.integration.workload import Call

Key = tuple[str, tuple[torch.Size, ...], torch.dtype, torch.device, str, int]
"""Function, shapes, dtype, device, and where the call is: file and line."""

_MADE_OF = {"inverse": "inv", "logdet": "slogdet", "pinverse": "pinv"}
"""The operation whose cases stand for a function that is none itself."""

_FIRST, _STEP = 16, 7
"""Backwards are timed of this many calls, and then of every so many: odd, since loops are even."""

_OF_LSTSQ = 4
"""Outputs, of which the third is the rank; it is read where that needs no waiting."""


class Tally:
    """Counts and seconds of equal calls, and what times their backwards."""

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

        def before(_cotangents: Any) -> None:
            self._began.append(now(device))

        def after(_gradients: Any, _cotangents: Any) -> None:
            seconds = now(device) - self._began.pop()
            if self._is_running():
                self.backward += seconds

        node, seen = None, {each.grad_fn for each in inputs}
        nodes = [each.grad_fn for each in outputs if each.requires_grad]
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

    def as_call(self, key: Key) -> Call:
        """What a file holds; the backwards of calls that were not timed are like the others."""
        function, sizes, dtype, device, file, line = key
        shapes = tuple(map(tuple, sizes))
        # The rank that all matrices have had, if that is not full.
        (rank,) = self.ranks if len(self.ranks) == 1 else (None,)
        rank = None if rank == min(shapes[0][-2:]) else rank
        scale = self.count / self.watched if self.watched else 0.0
        return Call(
            function=function,
            at=f"{_relative(file)}:{line}" if file else "",
            shapes=shapes,
            dtype=str(dtype).removeprefix("torch."),
            device=str(device),
            rank=rank,
            case=_case(function, shapes, dtype, str(device), rank),
            count=self.count,
            forward=self.forward,
            backward=self.backward * scale,
            backwards=round(self.backwards * scale),
        )

    def _counts(self, _cotangents: Any) -> None:
        self.backwards += self._is_running()


def now(device: torch.device) -> float:
    """The time at which all that was begun on a device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _relative(path: str) -> str:
    """To the current folder, where the file is in it."""
    with contextlib.suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


def _case(
    function: str,
    shapes: Sequence[tuple[int, ...]],
    dtype: torch.dtype,
    device: str,
    rank: int | None,
) -> str:
    """What to measure for a call; empty where a case has no words for it."""
    from strategies.measuring.case import Case

    name = function.rpartition(".")[2]
    name = _MADE_OF.get(name, name)
    if name == "cholesky_solve":  # which torch gives the matrix last
        shapes = shapes[::-1]
    if name not in operations.names() or len(shapes[0]) < 2:
        return ""
    likes = (torch.empty(shape, dtype=dtype, device="meta") for shape in shapes)
    operation, m, n, rhs, batch, _, _ = policy_key(name, *likes)
    with contextlib.suppress(ValueError):
        return str(Case(operation, (m, n), batch, dtype, device, rhs, rank=rank))
    return ""
