"""The file of a recording: which calls a program makes, and how long they take.

It is JSON, described by `Workload`:

    {"format": "backward-strategies workload", "version": 1, "program": ["train.py"], "seconds": 12.5,
     "machine": {"name": ..., "cpu": ..., "threads": 2, "torch": ..., ...},
     "calls": [{"function": "torch.linalg.solve", "at": "train.py:31", "shapes": [[8, 75, 75], [8, 75, 5]],
                "dtype": "float32", "device": "cpu", "case": "solve 8x75x75 k=5 float32 cpu",
                "count": 200, "forward": 0.61, "backward": 0.48, "backwards": 200}, ...]}

`backward-strategies measure --workload` measures its cases.
"""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from strategies.files.documents import Document

if TYPE_CHECKING:
    from strategies.measuring.case import Case

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]

_COLUMNS = "call", "count", "forward", "backward", "share", "where"
_LEFT = {"call", "where"}


class Call(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Equal calls in one place of a program.

    Attributes:
        function: as the program wrote it.
        at: file and line.
        shapes: of the arguments that are tensors.
        dtype: of the first.
        device: of the first.
        rank: of all matrices, where results say so and it is deficient.
        case: as `Case.parse` reads it; empty where none stands for the call.
        count: how many there were.
        forward: seconds of all of them.
        backward: seconds of their backwards, by those of some of the calls.
        backwards: how many of these there were, likewise.
    """

    function: str
    at: str
    shapes: tuple[tuple[Count, ...], ...]
    dtype: str
    device: str
    rank: Count | None = None
    case: str = ""
    count: Count
    forward: Seconds
    backward: Seconds = 0.0
    backwards: Count = 0

    @property
    def seconds(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward

    def __str__(self) -> str:
        sizes = ", ".join("x".join(map(str, shape)) for shape in self.shapes)
        rank = "" if self.rank is None else f" rank={self.rank}"
        return f"{self.function} {sizes}{rank} {self.dtype} {self.device}"


class Workload(Document, frozen=True, kw_only=True):
    """What a program has called; `str` is a table.

    Attributes:
        program: the command line.
        seconds: that were recorded.
        machine: a `strategies.measuring.machine.Machine`.
        calls: those that took longest first.
    """

    format: str = "backward-strategies workload"
    version: int = 1
    program: tuple[str, ...]
    seconds: Seconds
    machine: dict[str, Any]
    calls: tuple[Call, ...]

    def cases(self) -> "dict[Case, int]":
        """The cases to measure, and how often each was called; ValueError if `Case.parse` refuses one."""
        from strategies.measuring.case import Case

        counts: Counter[Case] = Counter()
        for call in self.calls:
            if call.case:
                counts[Case.parse(call.case)] += call.count
        return dict(counts)

    def __str__(self) -> str:
        from strategies.selection import text

        columns = []
        for heading, *cells in zip(_COLUMNS, *map(self._row, self.calls), strict=True):
            align = str.ljust if heading in _LEFT else str.rjust
            width = max(map(len, (heading, *cells)))
            columns.append([align(cell, width) for cell in (heading, *cells)])
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        spent = sum(call.seconds for call in self.calls)
        times = f"{text.seconds(spent)} of {text.seconds(self.seconds)}"
        return "\n".join([*lines, f"{times}, {self._share(spent)}, are of these calls"])

    def _row(self, call: Call) -> tuple[str, ...]:
        from strategies.selection import text

        backward = text.seconds(call.backward) if call.backwards else "-"
        times = text.seconds(call.forward), backward, self._share(call.seconds)
        return str(call), str(call.count), *times, call.at

    def _share(self, seconds: float) -> str:
        return f"{seconds / self.seconds:.1%}" if self.seconds else "-"
