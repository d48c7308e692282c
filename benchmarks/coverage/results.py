"""What is known of the calls, and the file that holds it: JSON, packed if its name ends in .gz."""

import math

import msgspec

from strategies.files.documents import Document


class Ratio(msgspec.Struct, frozen=True, array_like=True):
    """PyTorch's time over ours, with its 95 % interval; None where PyTorch has no result."""

    median: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        """As in a table: "1.23", or "alone" where PyTorch has no result."""
        return "alone" if self.median is None else f"{self.median:.3g}"

    @property
    def order(self) -> float:
        """The median, or infinity."""
        return math.inf if self.median is None else self.median


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A call in a mode, at a size as 100x8x8."""

    call: str
    mode: str
    size: str
    ratio: Ratio


class Coverage(Document, frozen=True, kw_only=True):
    """What one run of the command measured, and a line for each call that "auto" refuses."""

    format: str = "backward-strategies coverage"
    version: int = 1
    command: str
    processor: str
    threads: int
    torch: str
    date: str
    rows: list[Row]
    failures: list[str] = msgspec.field(default_factory=list)
