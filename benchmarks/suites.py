"""The asv suites of every measured operation, made from its record.

asv starts a process for every combination of parameters, n/a ones included. A grid is therefore
made of dense blocks, and every block is a suite. What a strategy or a machine cannot do is n/a, by
NotImplementedError in `setup`. Nothing but the measured call is inside a clock. Raise `version` by
hand when what is measured changes: asv would otherwise discard history at every edited comment.
"""

import functools
import inspect
import math
import os
import types
from typing import Any, ClassVar

import torch
import torch.fx.experimental.symbolic_shapes  # the first backward would, in every forked process

import strategies
from strategies import operations
from strategies.errors import LinAlgError
from strategies.measuring import Case, peak_bytes, work_of
from strategies.measuring.clock import sampler, synchronized_timer
from strategies.measuring.errors import gradient_error
from strategies.measuring.grid_cases import case_of, fits, parameters
from strategies.measuring.timing import interleaved
from strategies.measuring.workload import Backward, backward_of, forward_backward_of
from strategies.operations.grids import GRIDS, Blocks
from strategies.policy import BASELINE


def _chosen_grid() -> str:
    name = os.environ.get("BACKWARD_STRATEGIES_GRID", "full")
    if name not in GRIDS:
        raise ValueError(f"BACKWARD_STRATEGIES_GRID={name!r}: known grids are {', '.join(GRIDS)}")
    return name


GRID = _chosen_grid()

# Fewest and most samples or rounds, and the seconds after which no more are taken.
_EFFORT = {
    "tiny": (2, 6, 0.01),
    "quick": (3, 50, 0.1),
    "cpu": (3, 30, 0.06),
    "full": (5, 100, 0.5),
}[GRID]

_UNITS = {
    "track_gradient_error": "relative error",
    "track_speedup_over_native": "x",
    "track_peak_memory": "bytes",
    "track_flops": "flop",
}


class _Judged:
    """Accuracy of the backward over a block of cases."""

    operation: ClassVar[str]
    blocks: ClassVar[Blocks]
    params: ClassVar[list[Any]]
    param_names: ClassVar[list[str]] = ["strategy", "shape", "batch", "dtype", "device"]
    timer = staticmethod(synchronized_timer)
    timeout = 300.0
    rounds = 1
    repeat = _EFFORT
    warmup_time = 0.0  # `setup` has warmed up
    version = "1"

    def setup(self, strategy: str, *params: Any) -> None:
        """Builds the graph and runs one backward, unless the combination is n/a."""
        self.case = case_of(self.operation, *params)
        if not fits(self.case, self.blocks, strategy):
            raise NotImplementedError(f"{self.case} is too much for {strategy}")
        if self.case.device != "cpu":
            torch.cuda.set_device(self.case.device)
        self.backward, self.forward_backward = _prepared(self.case, strategy)

    def track_gradient_error(self, *params: Any) -> float:
        """The largest ‖computed − exact‖ / ‖exact‖ over inputs and matrices."""
        error = gradient_error(self.case, self.backward())
        return math.nan if error is None else error


class _Measured(_Judged):
    """Time and memory of the backward, too."""

    def time_backward(self, *params: Any) -> None:
        self.backward()

    def time_forward_backward(self, *params: Any) -> None:
        self.forward_backward()

    def track_speedup_over_native(self, *params: Any) -> float:
        """Time of native over time of the strategy, both in the same rounds."""
        if not fits(self.case, self.blocks, BASELINE):
            return math.nan
        native, _ = _prepared(self.case, BASELINE)
        _, most, seconds = _EFFORT
        samplers = {"native": sampler(native), "this": sampler(self.backward)}
        found = interleaved(samplers, max_rounds=most, budget=2 * seconds)
        return found["native"].seconds / found["this"].seconds

    def track_peak_memory(self, *params: Any) -> float:
        """What the backward holds at its peak, above its graph."""
        return float(peak_bytes(self.backward, self.case.device))

    def track_flops(self, *params: Any) -> float:
        """Floating-point operations of the backward, which no load of the machine changes."""
        return float(work_of(self.backward).flops)


def suites_of(operation: str, grid: str = GRID) -> dict[str, type[_Judged]]:
    """The suites of an operation, by the names that asv shows before the method's."""
    blocks = operations.get(operation).cells[grid]
    made = {
        "Single": (_Measured, blocks.single),
        "Batched": (_Measured, blocks.batched),
        "Conditioning": (_Judged, blocks.conditioned),
        "Sizes": (_Judged, blocks.sized),
        "Gallery": (_Judged, blocks.gallery),
    }
    suites = {}
    for kind, (base, block) in made.items():
        name = f"{operation}.{kind}"
        params: list[Any] = [list(strategies.available()), *parameters(block)]
        names = list(base.param_names)
        if block.log10_conds != (None,):
            params.append(list(block.log10_conds))
            names.append("log10_cond")
        members = {"operation": operation, "blocks": blocks, "params": params, "param_names": names}
        for method_name, method in inspect.getmembers(base, inspect.isfunction):
            if method_name.startswith(("time_", "track_")):
                # asv takes the name of a benchmark from its function, so each suite has its own.
                own = types.FunctionType(method.__code__, method.__globals__, method_name)
                unit = _UNITS.get(method_name, "seconds")
                vars(own).update(benchmark_name=f"{name}.{method_name}", unit=unit)
                members[method_name] = own
        suites[name] = type(name.replace(".", "_"), (base,), {"__doc__": base.__doc__, **members})
    return suites


@functools.lru_cache(maxsize=2)
def _prepared(case: Case, strategy: str) -> tuple[Backward, Backward]:
    """The callables of a case, built and warmed up once: asv runs `setup` for every sample."""
    try:
        backward = backward_of(case, strategy)
        backward()
        return backward, forward_backward_of(case, strategy)
    except LinAlgError as refusal:
        raise NotImplementedError(str(refusal)) from refusal


# asv finds the classes among the names of this module.
for _operation in operations.measured():
    globals().update({suite.__name__: suite for suite in suites_of(_operation).values()})
