"""What the judgements of a library amount to: for each operation and quantity the worst, and what fails."""

import math
from pathlib import Path

import msgspec

from strategies.oracle import grader
from strategies.oracle.grader import RIGHT, UNSTABLE, VERDICTS, WRONG, Case, Judgement

_LARGEST = 1e99  # stands for an infinite ratio, which JSON has not


class Entry(msgspec.Struct, kw_only=True, frozen=True):
    """One operation and quantity, computed in one way.

    Attributes:
        quantity: value, vjp, jvp or hvp; after a dot the way.
        counts: of cases, by verdict.
        worst: the largest ratio, at most 1e99; None where nothing was answered.
        worst_case: the case of that.
        smallest: of the cases that are unstable or wrong, the one with the fewest numbers, and of these the
            best conditioned.
        note: the first refusal.
    """

    operation: str
    quantity: str
    counts: dict[str, int]
    worst: float | None = None
    worst_case: str | None = None
    smallest: str | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Wrong before unstable before right; where no answer is, refuses before missing."""
        return next(name for name in (WRONG, UNSTABLE, RIGHT, *VERDICTS[3:]) if self.counts[name])


class Report(msgspec.Struct, kw_only=True, frozen=True):
    """All of a library, named with its version, by a set with a seed and so many cases of a kind."""

    library: str
    seed: int
    cases: int
    entries: list[Entry]

    @property
    def failed(self) -> bool:
        """Whether an answer is unstable or wrong."""
        return any(entry.smallest is not None for entry in self.entries)


def report(of: Path, answers: Path) -> Report:
    """Judges a file of answers to a set."""
    header, cases = grader.read(of)
    library, found = grader.judged(header, cases, answers)
    by_id = {case["id"]: case for case in cases}
    operations = [*dict.fromkeys(case["operation"] for case in cases)]

    def place(group: tuple[str, str]) -> tuple[int, int, str]:
        operation, quantity = group
        kind = grader.QUANTITIES.index(quantity.partition(".")[0])
        return operations.index(operation), kind, quantity

    groups: dict[tuple[str, str], list[Judgement]] = {}
    for each in found:
        groups.setdefault((by_id[each.id]["operation"], each.quantity), []).append(each)
    entries = [_entry(*group, groups[group], by_id) for group in sorted(groups, key=place)]
    return Report(library=library, seed=header["seed"], cases=header["cases"], entries=entries)


def _entry(operation: str, quantity: str, own: list[Judgement], cases: dict[str, Case]) -> Entry:
    def size(judgement: Judgement) -> tuple[int, float]:
        case = cases[judgement.id]
        return sum(math.prod(each["shape"]) for each in case["inputs"]), max(case["conditions"])

    answered = [each for each in own if not math.isnan(each.ratio)]
    worst = max(answered, key=lambda each: each.ratio, default=None)
    failing = [each for each in own if each.verdict in (UNSTABLE, WRONG)]
    return Entry(
        operation=operation,
        quantity=quantity,
        counts={name: sum(each.verdict == name for each in own) for name in VERDICTS},
        worst=None if worst is None else min(float(f"{worst.ratio:.1e}"), _LARGEST),
        worst_case=None if worst is None else worst.id,
        smallest=min(failing, key=size).id if failing else None,
        note=next((each.note for each in own if each.note), ""),
    )
