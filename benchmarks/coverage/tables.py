"""What was measured of the calls, as Markdown."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.coverage.results import Coverage, Ratio, Row

SLOWER = 0.95
"""The upper end of an interval below which "auto" is called slower."""


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


def told_where(coverage: Coverage) -> str:
    """The command, the machine and the day."""
    return (
        f"Measured by `{coverage.command}` on {coverage.processor} with {coverage.threads} threads, "
        f"torch {coverage.torch}, {coverage.date}."
    )
