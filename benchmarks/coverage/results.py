"""What is known of the calls, in a file, JSON, packed if its name ends in .gz, and as Markdown."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from strategies.files.documents import Document

SLOWER = 0.95
"""The upper end of an interval below which "auto" is called slower."""


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

    @property
    def where(self) -> str:
        """The command, the machine and the day."""
        return (
            f"Measured by `{self.command}` on {self.processor} with {self.threads} threads, "
            f"torch {self.torch}, {self.date}."
        )


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """A line a mode."""
    yield f"| mode | calls and sizes | geometric mean | least | below {SLOWER} |"
    yield "|---|---:|---:|---:|---:|"
    by_mode = defaultdict(list)
    for row in rows:
        if row.ratio.median is not None:
            by_mode[row.mode].append(row.ratio)
    for mode, found in by_mode.items():
        medians = [each.order for each in found]
        slower = sum(each.high is not None and each.high < SLOWER for each in found)
        mean, least = statistics.geometric_mean(medians), min(medians)
        yield f"| {mode} | {len(medians)} | {mean:.2f} | {least:.2f} | {slower} |"


def calls(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each call and mode, the worst first; a column a size."""
    sizes = list(dict.fromkeys(row.size for row in rows))
    yield f"| call | mode | {' | '.join(sizes)} |"
    yield "|---|---|" + "---:|" * len(sizes)
    by_call: dict[tuple[str, str], dict[str, Ratio]] = defaultdict(dict)
    for row in rows:
        by_call[row.call, row.mode][row.size] = row.ratio

    def worst(item: tuple[tuple[str, str], dict[str, Ratio]]) -> float:
        return min(ratio.order for ratio in item[1].values())

    for (call, mode), found in sorted(by_call.items(), key=worst):
        entries = [str(found[size]) if size in found else "" for size in sizes]
        yield f"| {call} | {mode} | {' | '.join(entries)} |"
