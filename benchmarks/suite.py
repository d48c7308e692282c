"""What every operation's asv module measures. The modules themselves only name the cases.

What a strategy, an operation or a machine cannot do is n/a, by NotImplementedError in `setup`.
Nothing but the measured call is inside a clock. Raise `version` by hand when what is measured
changes: asv would otherwise discard history at every edited comment.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import torch
import torch.fx.experimental.symbolic_shapes  # the first backward would, in every forked process
from torch import Tensor

from benchmarks import grid
from strategies.accuracy.reference import gradient
from strategies.measuring import (
    Case,
    backward_of,
    forward,
    forward_backward_of,
    paired,
    peak_bytes,
    synchronized_timer,
    work_of,
)

ELEMENTS_CHECKED = 8
"""Matrices of a batch whose gradients are compared with exact ones."""

WORST_ERROR = 1e6
"""Stands for an infinite error, on which `asv publish` hangs."""

TEST_RATIO = 30
"""LAPACK's limit for an error in units of κ·ε·max(m, n)."""

Backward = Callable[[], tuple[Tensor, ...]]
Method = TypeVar("Method", bound=Callable[..., object])

# Fewest and most samples or pairs, and the seconds after which no more are taken.
_EFFORT = {
    "tiny": (2, 6, 0.01),
    "quick": (3, 50, 0.1),
    "cpu": (3, 30, 0.06),
    "full": (5, 100, 0.5),
}[grid.chosen_name()]


def unit(name: str, *, samples: bool = False) -> Callable[[Method], Method]:
    """Gives a `track_` method its unit; with `samples` it returns them and asv keeps quantiles."""

    def decorate(method: Method) -> Method:
        vars(method).update(unit=name, type="time" if samples else "track")
        return method

    return decorate


class Suite(ABC):
    """One operation over a block of cases."""

    param_names: ClassVar[list[str]] = grid.PARAMETERS
    timer = staticmethod(synchronized_timer)
    timeout = 300.0
    rounds = 1
    repeat = _EFFORT
    warmup_time = 0.0  # `setup` has warmed up
    version = "1"

    @property
    @abstractmethod
    def operation(self) -> str:
        """The name in `torch.linalg`."""

    @property
    @abstractmethod
    def params(self) -> list[Any]:
        """The values of each of `param_names`."""

    def setup(self, strategy: str, *params: Any) -> None:
        """Builds the graph and runs one backward, unless the combination is n/a."""
        self.case = grid.case_of(self.operation, *params)
        if not grid.is_affordable(self.case, strategy):
            raise NotImplementedError(f"{self.case.label} is too much for {strategy}")
        if self.case.device != "cpu":
            torch.cuda.set_device(self.case.device)
        self.backward, self.forward_backward = prepared(self.case, strategy)


class Measured(Suite):
    """Time, accuracy and memory of the backward."""

    def time_backward(self, *params: Any) -> None:
        self.backward()

    def time_forward_backward(self, *params: Any) -> None:
        self.forward_backward()

    @unit("x", samples=True)
    def track_speedup_over_native(self, *params: Any) -> dict[str, Any] | float:
        """Time of native over time of the strategy, in each of the pairs that ran in turn."""
        if not grid.is_affordable(self.case, "native"):
            return math.nan
        native, _ = prepared(self.case, "native")
        _, most, seconds = _EFFORT
        timing = paired(native, self.backward, max_pairs=most, budget=2 * seconds)
        return {"samples": list(timing.ratios), "number": 1}

    @unit("relative error")
    def track_gradient_error(self, *params: Any) -> float:
        """The largest ‖computed − exact‖ / ‖exact‖ over inputs and matrices."""
        return gradient_error(self.case, self.backward)

    @unit("bytes")
    def track_peak_memory(self, *params: Any) -> float:
        """What the backward holds at its peak, above its graph."""
        return float(peak_bytes(self.backward, self.case.device))

    @unit("flop")
    def track_flops(self, *params: Any) -> float:
        """Floating-point operations of the backward, which no load of the machine changes."""
        return float(work_of(self.backward).flops)


class Judged(Suite):
    """Accuracy of the backward, and nothing else."""

    @unit("relative error")
    def track_gradient_error(self, *params: Any) -> float:
        """The largest ‖computed − exact‖ / ‖exact‖ over inputs and matrices."""
        return gradient_error(self.case, self.backward)


class Conditioned(Judged):
    """Accuracy of the backward at given condition numbers."""

    param_names: ClassVar[list[str]] = [*grid.PARAMETERS, "log10_cond"]


def gradient_error(case: Case, backward: Backward) -> float:
    """Largest relative error against the exact gradient, over some matrices of a batch.

    Returns:
        A finite number above zero, so that it can be drawn on a logarithmic axis; NaN where the
        exact gradient would take too long.
    """
    if not grid.has_affordable_reference(case):
        return math.nan
    inputs = case.inputs()
    cotangents = case.cotangents(forward(case, "native"))
    computed = backward()
    if case.batch > ELEMENTS_CHECKED:
        generator = torch.Generator().manual_seed(case.seed)
        chosen = torch.randperm(case.batch, generator=generator)[:ELEMENTS_CHECKED]
        inputs, cotangents, computed = (
            tuple(t[chosen.to(t.device)] for t in group) for group in (inputs, cotangents, computed)
        )
    exact = gradient(case.operation, inputs, cotangents, rank=case.known_rank)
    floor = torch.finfo(case.dtype).eps * 2**-10
    return min(max(exact.relative_error(computed), floor), WORST_ERROR)


def error_limit(case: Case) -> float:
    """The gradient error beyond which a backward stable method would have failed.

    Example:
        >>> f"{error_limit(Case('inv', (100, 100))):.0e}"
        '7e-12'
    """
    condition = 10 ** (1.0 if case.log10_cond is None else case.log10_cond)
    return TEST_RATIO * condition * max(case.shape) * torch.finfo(case.dtype).eps


@functools.lru_cache(maxsize=2)
def prepared(case: Case, strategy: str) -> tuple[Backward, Backward]:
    """The callables of a case, built and warmed up once: asv runs `setup` for every sample.

    Raises:
        NotImplementedError: the strategy refuses the case.
    """
    try:
        backward = backward_of(case, strategy)
        backward()
        return backward, forward_backward_of(case, strategy)
    except torch.linalg.LinAlgError as refusal:  # type: ignore[attr-defined]
        raise NotImplementedError(str(refusal)) from refusal
