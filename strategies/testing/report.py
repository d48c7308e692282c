"""What a conformance check found, for people and for pytest."""

from __future__ import annotations

import enum
import textwrap
from dataclasses import dataclass

__all__ = ["ConformanceError", "Outcome", "Report", "Status"]


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
    """All checks of one strategy, in the order in which they ran.

    Attributes:
        strategy: its name.
        outcomes: one for each check.
    """

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
        """Make pytest, or any caller, fail with the failures as the message.

        Raises:
            ConformanceError: a check failed.
        """
        if not self.passed:
            raise ConformanceError(str(self))

    def __str__(self) -> str:
        summary = f"strategy '{self.strategy}': {self._count()}"
        failures = [
            f"{outcome.check}\n{textwrap.indent(outcome.detail, '    ')}"
            for outcome in self.failures
        ]
        return "\n".join([summary, *failures])

    def _count(self) -> str:
        if self.passed:
            return f"all {len(self.outcomes)} checks in order"
        return f"{len(self.failures)} of {len(self.outcomes)} checks failed"
