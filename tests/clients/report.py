"""What a run of a test suite has found, and the file that holds it."""

from typing import Self

from strategies.files.documents import Document


class Report(Document, frozen=True, kw_only=True):
    """A run of a test suite.

    Attributes:
        outcomes: "passed", "failed" or "skipped" for each test.
        messages: the first line of the error of each that failed.
        ours: the calls of each replaced function that this package computed.
        refusals: those that went to PyTorch, by function and reason.
    """

    format: str = "backward-strategies client"
    version: int = 1
    outcomes: dict[str, str]
    messages: dict[str, str]
    ours: dict[str, int]
    refusals: dict[str, int]
    seconds: float

    def that(self, outcome: str) -> set[str]:
        """The tests that have an outcome."""
        return {test for test, found in self.outcomes.items() if found == outcome}

    def broken(self, by_torch: Self) -> list[str]:
        """The tests that pass with torch alone, and do not here."""
        return sorted(by_torch.that("passed") - self.that("passed"))

    def mended(self, by_torch: Self) -> list[str]:
        """The tests that fail with torch alone, and pass here."""
        return sorted(by_torch.that("failed") & self.that("passed"))
