"""What is known of a program, and the files that hold it: one a program, written in one step.

It is JSON, described by `Result`, packed if its name ends in .gz. A file is resumed by what was measured
with the same program, size and number of steps on the same machine and commit; any other is measured
anew.
"""

import math
from pathlib import Path

import msgspec

from benchmarks.training.choices import Choice
from strategies.errors import UnusableFileError
from strategies.files.documents import Document, json_files
from strategies.measuring import Machine, Timing

Losses = tuple[float | None, ...]
"""None for what is not finite."""


class Way(msgspec.Struct, frozen=True):
    """A program run in one way: "torch", "auto", or by the strategy that is named.

    Quotients of steps between the ways are paired ratios. Losses are empty where they were not kept.
    """

    strategy: str
    step: Timing
    peak_bytes: int
    losses: Losses = ()


class Result(Document, frozen=True, kw_only=True):
    """A program, measured in its "small" or "full" size.

    Attributes:
        torch: as the program is.
        auto: by `replace_torch`.
        tuned: by the one strategy that is best for it.
        jax: a step of it in JAX, if there is one and JAX.
        forward: the share of PyTorch's step in the calls that can be replaced.
        backward: the share in their backwards.
        moved: PyTorch's losses where every parameter moves by one rounding at first; empty in old files.
        choices: of "auto", in the cases of these calls.
    """

    format: str = "backward-strategies program"
    version: int = 1
    program: str
    size: str
    machine: Machine
    torch: Way
    auto: Way
    tuned: Way
    jax: Timing | None = None
    forward: float
    backward: float
    choices: tuple[Choice, ...]
    moved: Losses = ()

    @property
    def ceiling(self) -> float:
        """How many times as fast a step were if these calls took no time (Amdahl's law)."""
        return 1 / max(1 - self.forward - self.backward, 1e-9)

    def faster(self, way: Way) -> tuple[float, float, float]:
        """How many times as fast as PyTorch a way is, with the ends of a 95 % interval."""
        return self.torch.step.over(way.step)

    @property
    def by_jax(self) -> tuple[float, float, float] | None:
        """How many times as fast as PyTorch JAX is, likewise."""
        return self.torch.step.over(self.jax) if self.jax else None

    def memory(self, way: Way) -> float:
        """Its bytes over PyTorch's."""
        return way.peak_bytes / max(self.torch.peak_bytes, 1)

    @property
    def difference(self) -> float:
        """The largest relative difference of a loss by "auto" to that by PyTorch."""
        return _largest_difference(self.torch.losses, self.auto.losses)

    @property
    def by_rounding(self) -> float | None:
        """That of PyTorch's losses to those of `moved`, if these are known."""
        return _largest_difference(self.torch.losses, self.moved) if self.moved else None


def load(folder: Path) -> list[Result]:
    """All results in a folder, by the names of the programs; UnusableFileError if there are none."""
    found = [*map(Result.read, json_files(folder))]
    if not found:
        raise UnusableFileError(folder, "holds no measured programs; `make programs` makes some")
    return found


def kept(path: Path, size: str, steps: int, machine: Machine) -> bool:
    """Whether a file holds what would be measured: the same, on the same machine and commit."""
    if not path.exists():
        return False
    found = Result.read(path)
    where = msgspec.structs.replace(found.machine, started_at=machine.started_at)
    return (found.size, len(found.torch.losses), where) == (size, steps, machine)


def _largest_difference(ones: Losses, others: Losses) -> float:
    pairs = zip(ones, others, strict=True)
    return max((_difference(*pair) for pair in pairs), default=0.0)


def _difference(one: float | None, other: float | None) -> float:
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    return abs(one - other) / max(abs(one), abs(other), 1e-300)
