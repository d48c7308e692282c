"""What a page says of the runs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from plots import marked
from strategies.selection.text import seconds
from tests.clients.library import Library
from tests.clients.report import Report
from tests.clients.suite import AFTER, BEFORE, INSTALLED, TORCH

Found = Mapping[Library, Mapping[str, Report]]
"""A report for each way."""

_OURS = {AFTER: "imported after", BEFORE: "imported before", INSTALLED: "operators installed"}

_HEAD = ("library", "with torch alone", *_OURS.values(), "calls: ours", "PyTorch's", "took")


def table(found: Found) -> str:
    """A row for each library: tests that passed and failed, calls and seconds."""
    return marked.table(_HEAD, map(_line, found, found.values()), left=1)


def _line(library: Library, ways: Mapping[str, Report]) -> tuple[str, ...]:
    reports = [ways[way] for way in (TORCH, *_OURS)]
    return (
        f"{library.name} {library.version}",
        *(f"{len(each.that('passed'))} / {len(each.that('failed'))}" for each in reports),
        *(str(sum(calls.values())) for calls in (ways[AFTER].ours, ways[AFTER].refusals)),
        ", ".join(seconds(each.seconds) for each in reports),
    )


def differing(found: Found) -> str:
    """The tests whose outcome differs, with the errors of those that fail."""
    lines = []
    for library, ways in found.items():
        for way, told in _OURS.items():
            report, by_torch = ways[way], ways[TORCH]
            for test in report.broken(by_torch):
                why = report.messages.get(test, "not run")
                lines.append(f"- {library.name}, {told}, fails: `{test}`: `{why}`")
            lines += [
                f"- {library.name}, {told}, passes, which fails with torch alone: `{test}`"
                for test in report.mended(by_torch)
            ]
    return "\n".join(lines) or "None."


_OF_A_TYPE = re.compile(r"\w+ may(?= define what torch's functions do)")


def refusals(reports: Iterable[Report]) -> str:
    """How many calls of which function went to PyTorch, and why."""
    calls: Counter[str] = Counter()
    for report in reports:
        for refusal, count in report.refusals.items():
            calls[_OF_A_TYPE.sub("the type of an argument may", refusal)] += count
    lines = [(f"`{refusal}`", str(count)) for refusal, count in calls.most_common()]
    return marked.table(("function and reason", "calls"), lines, left=1)
