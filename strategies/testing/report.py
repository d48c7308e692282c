"""What a conformance check found, for people and for pytest."""

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
        detail: what was wrong, why it is not applicable, or a note; empty where there is none.
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
    def not_applicable(self) -> tuple[Outcome, ...]:
        """The checks that ask what the strategy does not claim to do."""
        return tuple(o for o in self.outcomes if o.status is Status.NOT_APPLICABLE)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def raise_if_failed(self) -> None:
        """Make pytest, or any caller, fail: a ConformanceError with the failures as its message."""
        if not self.passed:
            raise ConformanceError(str(self))

    def __str__(self) -> str:
        failures = [f"{o.check}\n{textwrap.indent(o.detail, '    ')}" for o in self.failures]
        return "\n".join([f"strategy '{self.strategy}': {self.verdict}", *failures])

    @property
    def verdict(self) -> str:
        """In a few words, as "passed, but 3 of 78 checks are not applicable"."""
        count, skipped = len(self.outcomes), len(self.not_applicable)
        if self.failures:
            return f"{len(self.failures)} of {count} checks failed"
        if skipped:
            are = "check is" if skipped == 1 else "checks are"
            return f"passed, but {skipped} {are} not applicable, of {count}"
        return f"all {count} checks passed"
