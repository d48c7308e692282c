"""What is known of the calls, and the file that holds it: JSON, packed if its name ends in .gz."""

import math
from pathlib import Path

import msgspec

from strategies import files

FORMAT = "backward-strategies coverage"
VERSION = 1


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


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of the command measured, and a line for each call that "auto" refuses."""

    format: str = FORMAT
    version: int = VERSION
    command: str
    processor: str
    threads: int
    torch: str
    date: str
    rows: list[Row]
    failures: list[str] = []


def save(coverage: Coverage, path: Path) -> None:
    """Writes a file; UnusableFileError if it cannot be written."""
    files.write_text(path, files.json_text(coverage))


def load(path: Path) -> Coverage:
    """What a file holds; UnusableFileError if it is missing, damaged, foreign or of another version."""
    return files.read(path, Coverage, FORMAT, VERSION)
