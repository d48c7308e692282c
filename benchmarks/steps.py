"""The asv suite of the programs: a training step as it is, and under `replace_torch`.

What asv compares are commits. A program's own ratios are measured by `benchmarks.training`, in pairs.
"""

from typing import Any, ClassVar

from benchmarks.programs import PROGRAMS, named
from benchmarks.training.ways import TORCH, way
from strategies.measuring import peak_bytes
from strategies.selection.stability import AUTO


class Step:
    """Time and memory of a step in the small size."""

    params: ClassVar[list[Any]] = [[TORCH, AUTO], [program.name for program in PROGRAMS]]
    param_names: ClassVar[list[str]] = ["way", "program"]
    timeout = 300.0
    rounds = 1
    repeat = (5, 50, 1.0)
    warmup_time = 0.0  # `setup` has warmed up
    version = "1"

    def setup(self, name: str, program: str) -> None:
        """Takes a first step, in which libraries load and the optimizer makes its state."""
        self.way = way(name)
        self.way.__enter__()
        self.step = named(program).step()
        self.step()

    def teardown(self, *params: str) -> None:
        """Gives torch's functions back."""
        self.way.__exit__(None, None, None)

    def time_step(self, *params: str) -> None:
        self.step()

    def track_peak_memory(self, *params: str) -> float:
        """What a step holds at its peak, above what is there before."""
        return float(peak_bytes(self.step))


for _name in ("time_step", "track_peak_memory"):
    # Without the class, as the suites of the operations are named.
    vars(vars(Step)[_name])["benchmark_name"] = f"programs.{_name}"
vars(Step.track_peak_memory)["unit"] = "bytes"
vars(Step.time_step)["unit"] = "seconds"
