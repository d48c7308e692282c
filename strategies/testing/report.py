"""What a conformance check found, for people and for pytest."""

from __future__ import annotations

import enum
import textwrap
from dataclasses import dataclass


class ConformanceError(AssertionError):
    """A strategy does not do what all strategies must; the message is the report's failures."""


class Status(enum.Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True)
class Outcome:
    """One check of one strategy.

    Attributes:
        check: the name of the check.
        status: how it ended.
        detail: what was wrong, or why it is not applicable; empty where it passed.
    """

    check: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """All checks of one strategy, by name, in the order in which they ran."""

    strategy: str
    outcomes: tuple[Outcome, ...]

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The checks that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.status is Status.FAILED)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def raise_if_failed(self) -> None:
        """Make pytest, or any caller, fail: a ConformanceError with the failures as its message."""
        if not self.passed:
            raise ConformanceError(str(self))

    def __str__(self) -> str:
        count = len(self.outcomes)
        found = f"{len(self.failures)} of {count}" if self.failures else f"all {count}"
        verdict = "failed" if self.failures else "passed"
        failures = [f"{o.check}\n{textwrap.indent(o.detail, '    ')}" for o in self.failures]
        return "\n".join([f"strategy '{self.strategy}': {found} checks {verdict}", *failures])
